"""What is left when a worker dies in the middle of a file, an embedder fails, or a file goes."""

import asyncio

import pytest

from tests.support.documents import pdf
from tests.support.folders import done, folder, passages_of, upload
from tests.support.patience import PATIENCE
from tests.support.worker_processes import worker_process
from tests.support.working import over, working

pytestmark = pytest.mark.slow


def book(paragraphs: int) -> bytes:
    words = "The mill grinds {0} sacks a day, and every sack has the number {0}. " * 12
    return "\n\n".join(words.format(number) for number in range(paragraphs)).encode()


async def file_of(client, folder_id, file_id):
    return done(await client.get(f"/folders/{folder_id}/files/{file_id}"))


class TestKilled:
    async def test_workers_leave_every_passage_once(self, client, dsn):
        folder_id = await folder(client)
        accepted = await upload(client, folder_id, "book.txt", book(400))
        file_id = accepted["file"]["file_id"]

        seen = set()
        for wanted in ({"parsing", "embedding"}, {"embedding"}):
            async with worker_process(dsn) as worker:
                async with asyncio.timeout(PATIENCE):
                    while True:
                        file = await file_of(client, folder_id, file_id)
                        if file["state"] in wanted and file["passage_count"] not in seen:
                            break
                        if file["state"] == "completed":
                            break
                        await asyncio.sleep(0.01)
                seen.add(file["passage_count"])
                await worker.kill()
            found = await client.post(
                "/passages/search", json={"query": "mill sacks", "user_id": "ana"}
            )
            if file["state"] != "completed":
                assert done(found)["items"] == [], "half a file was found"
        async with worker_process(dsn):
            await over(client, accepted["job_id"])

        file = await file_of(client, folder_id, file_id)
        assert (file["state"], file["passage_count"]) == ("completed", file["passages_expected"])
        ordinals, text, cursor = [], "", None
        while True:
            params = {"cursor": cursor} if cursor else {}
            path = f"/folders/{folder_id}/files/{file_id}/passages"
            page = done(await client.get(path, params=params))
            ordinals += [one["ordinal"] for one in page["items"]]
            text += "".join(one["content"] for one in page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert ordinals == list(range(file["passage_count"]))
        assert "".join(text.split()) == "".join(book(400).decode().split())


class TestGone:
    async def test_a_file_that_is_deleted_meanwhile_leaves_nothing(self, client, runtime, dsn):
        folder_id = await folder(client)
        accepted = await upload(client, folder_id, "a.pdf", pdf("Some words."))
        path = f"/folders/{folder_id}/files/{accepted['file']['file_id']}"
        done(await client.delete(path))
        async with working(runtime, dsn):
            job = await over(client, accepted["job_id"])
        assert job["status"] == "cancelled"
        assert done(await client.get(f"/folders/{folder_id}/passages"))["items"] == []

    async def test_a_cancelled_job_is_an_error_of_the_file(self, client, runtime, dsn):
        folder_id = await folder(client)
        accepted = await upload(client, folder_id, "a.txt", b"Some words.")
        file_id = accepted["file"]["file_id"]
        busy = await client.post(f"/folders/{folder_id}/files/{file_id}/reingest")
        assert busy.json()["code"] == "file_busy"
        done(await client.post(f"/jobs/{accepted['job_id']}/cancel"))
        file = await file_of(client, folder_id, file_id)
        assert (file["state"], file["error_code"]) == ("error", "cancelled")
        again = done(await client.post(f"/folders/{folder_id}/files/{file_id}/reingest"))
        async with working(runtime, dsn):
            await over(client, again["job_id"])
        assert (await file_of(client, folder_id, file_id))["state"] == "completed"
        assert len(await passages_of(client, folder_id, file_id)) == 1
