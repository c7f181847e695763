"""Messages with images, audio and files wherever messages go: read, summarised, moved, restored."""

import json
from typing import Any

import pytest
from httpx import AsyncClient

from app.runtime import Runtime
from kemem import AsyncMemory
from tests.client.conftest import client_of
from tests.exports.exports_support import NDJSON, exported, imported
from tests.support.api import append, every_page, ok
from tests.support.conversations import compact, policy, summaries
from tests.support.excerpts import context, said
from tests.support.images import IMAGES
from tests.support.tenants import Caller
from tests.support.working import extracted, working

PNG = IMAGES["png"]
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
NAME = f"[image, png, {len(PNG) * 3 // 4 - PNG.count('=')} bytes]"
MUNICH = {"type": "text", "text": "I live in Munich."}
DOG = {"type": "text", "text": "My dog is called Rex."}
SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
LARGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_096_800}}


def with_parts(*parts: dict[str, Any], role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": list(parts), **more}


async def parts_of(client: AsyncClient, session_id: str = "s1") -> list[Any]:
    rows = await every_page(client, f"/sessions/{session_id}/messages")
    return [row["content_parts"] for row in rows]


async def memories(client: AsyncClient) -> list[str]:
    rows = await every_page(client, "/memories", user_id="ana")
    return sorted(row["content"] for row in rows)


class TestReadForMemories:
    async def test_words_beside_an_image_are_remembered_and_nothing_else(
        self, client: AsyncClient, runtime: Runtime, dsn: str
    ) -> None:
        shouted = f"I have worked in Bonn since 2019. ![me](data:image/png;base64,{PNG})"
        await append(client, "s1", with_parts(MUNICH, PICTURE, DOG), said("assistant", "I see."))
        await append(client, "s1", shouted, said("assistant", "Good."))

        async with working(runtime, dsn):
            await extracted(client, "s1")

        kept = await memories(client)
        assert any("Munich" in one for one in kept)
        assert any("Bonn" in one for one in kept)
        assert not any("image" in one or "base64" in one or "![" in one for one in kept)

    async def test_a_message_of_parts_alone_starts_no_reading_and_says_so(
        self, client: AsyncClient, runtime: Runtime, dsn: str
    ) -> None:
        told = await append(client, "s1", with_parts(PICTURE, SOUND))

        assert (told["extraction"]["scheduled"], told["extraction"]["reason"]) == (
            False,
            "upload_only",
        )
        ok(await client.post("/sessions/s1/end", json={}))
        async with working(runtime, dsn):
            await extracted(client, "s1")
        assert await memories(client) == []


class TestSummarised:
    async def test_a_summary_names_what_was_sent(self, client: AsyncClient) -> None:
        await policy(client, "s1", budget_tokens=4000, keep_messages=2)
        for _ in range(3):
            await append(client, "s1", with_parts(PICTURE, SOUND), said("assistant", "I see."))

        answer = await compact(client, "s1", force=True)

        assert answer["compacted"]
        [summary] = await summaries(client, "s1")
        assert NAME in summary["content"]
        assert PNG not in summary["content"]

    async def test_what_stands_behind_a_data_url_is_summarised(self, client: AsyncClient) -> None:
        await policy(client, "s1", budget_tokens=40_000, keep_messages=1)
        long = f"![x](data:image/png;base64,{'A' * 20_000}) The boat leaves Lisbon at noon."
        await append(client, "s1", long, said("assistant", "I see."), "Thanks.")

        await compact(client, "s1", force=True)

        [summary] = await summaries(client, "s1")
        assert "Lisbon" in summary["content"]
        assert "AAAA" not in summary["content"]


class TestMoved:
    @pytest.mark.parametrize("large", [False, True], ids=["small", "as large as a request"])
    async def test_an_export_brings_parts_back(
        self, client: AsyncClient, stranger: AsyncClient, large: bool
    ) -> None:
        parts = [MUNICH, LARGE] if large else [PICTURE, SOUND, {"type": "hologram", "x": [1]}]
        await append(client, "s1", with_parts(*parts))
        lines = await exported(client)

        await imported(stranger, lines, size=1 if large else 1000)

        assert await parts_of(stranger) == [parts]

    @pytest.mark.parametrize(("over", "status"), [(-1, 422), (0, 422), (1, 413)])
    async def test_a_part_of_an_import_has_a_limit_of_its_own(
        self, client: AsyncClient, over: int, status: int
    ) -> None:
        body = b"x" * (3 * 1024 * 1024 + over)

        answer = await client.post("/import", content=body, headers=NDJSON)

        assert answer.status_code == status, answer.text

    async def test_a_checkpoint_and_a_fork_have_them(self, client: AsyncClient) -> None:
        await append(client, "s1", with_parts(PICTURE, DOG))
        made = ok(await client.post("/sessions/s1/checkpoints", json={}), 201)
        await append(client, "s1", with_parts(SOUND))

        fork = ok(await client.post("/sessions/s1/fork", json={}), 201)
        path = f"/sessions/s1/checkpoints/{made['checkpoint_id']}/restore"
        ok(await client.post(path, json={}))

        assert await parts_of(client, fork["session_id"]) == [[PICTURE, DOG], [SOUND]]
        restored = await context(client, "s1", include={"excerpts": False})
        assert [one["content"] for one in restored["messages"]] == [[PICTURE, DOG]]


class TestClient:
    async def test_messages_are_sent_and_read_with_their_parts(
        self, app: Any, acme: Caller
    ) -> None:
        async with client_of(app, acme.key) as memory:
            assert isinstance(memory, AsyncMemory)
            await memory.append("s1", [with_parts(DOG, PICTURE, message_id="m1")], "ana")

            [message] = await memory.messages("s1")
            [hit] = await memory.search_messages("Rex", user_id="ana")
            seen = await memory.context("s1")

        assert message.content_parts == (DOG, PICTURE)
        assert str(message) == "user: My dog is called Rex. [image_url]"
        assert str(hit).endswith(f"user: My dog is called Rex. {NAME[:-1]}, message m1]")
        assert json.loads(json.dumps(seen.messages))[-1]["content"] == [DOG, PICTURE]
