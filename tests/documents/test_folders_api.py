"""Folders, uploads, passages and their search, over HTTP."""

import asyncio
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from tests.support.documents import bomb, pdf, word
from tests.support.folders import done, folder, ingested, passages_of, upload
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import make_key
from tests.support.working import over, working

REFUNDS = "Refunds take five working days after we receive the parcel."
CHINESE = "退款需要五个工作日。客户必须提供订单号码。"


@pytest.fixture
async def worker(runtime, dsn):
    async with working(runtime, dsn) as running:
        yield running


class TestFolders:
    async def test_are_made_listed_changed_and_deleted(self, client):
        folder_id = await folder(client)
        path = f"/folders/{folder_id}"
        made = done(await client.get(path))
        assert (made["scope"], made["user_id"], made["file_count"]) == ("user", "ana", 0)

        changed = await client.patch(path, json={"folder_name": "Help"}, headers={"If-Match": "1"})
        assert done(changed)["version"] == 2
        stale = await client.patch(path, json={"folder_name": "X"}, headers={"If-Match": "1"})
        assert stale.json()["code"] == "version_conflict"
        [listed] = done(await client.get("/folders", params={"user_id": "ana"}))["items"]
        assert listed["folder_name"] == "Help"

        assert done(await client.delete(path, params={"dry_run": True}))["dry_run"]
        assert done(await client.delete(path))["files"] == 0
        assert (await client.get(path)).json()["code"] == "folder_not_found"

    @for_each(
        ("body", "code"),
        [
            ({"scope": "user"}, "scope_requires_id"),
            ({"scope": "project", "user_id": "ana"}, "invalid_request"),
            ({"scope": "project", "project_id": "nothing"}, "project_not_found"),
            ({"scope": "agent", "agent_id": "nobody"}, "agent_not_found"),
        ],
    )
    async def test_need_an_owner(self, client, body, code):
        answer = await client.post("/folders", json={"folder_name": "F"} | body)
        assert answer.json()["code"] == code

    async def test_make_their_user_on_first_use(self, app, runtime, acme, client):
        body = {"folder_name": "F", "scope": "user", "user_id": "new-one"}

        made = done(await client.post("/folders", json=body))

        assert made["user_id"] == "new-one"
        assert done(await client.get("/users/new-one"))["user_id"] == "new-one"
        bound = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        async with client_of(app, bound.key) as ana:
            refused = await ana.post("/folders", json=body | {"user_id": "new-two"})
        assert refused.json()["code"] == "user_not_found"
        assert (await client.get("/users/new-two")).status_code == 404

    async def test_one_that_holds_something_takes_a_word(self, client):
        folder_id = await folder(client)
        await upload(client, folder_id, "a.txt", b"Hello.")
        refused = await client.delete(f"/folders/{folder_id}")
        assert refused.json()["code"] == "confirmation_required"
        assert refused.json()["holds"]["files"] == 1
        gone = done(await client.delete(f"/folders/{folder_id}", params={"confirm": True}))
        assert gone["files"] == 1

    async def test_of_others_are_not_there(self, client, stranger):
        folder_id = await folder(client)
        for path in ("", "/files", "/passages"):
            answer = await stranger.get(f"/folders/{folder_id}{path}")
            assert answer.json()["code"] == "folder_not_found"


class TestWhoSees:
    async def test_keys_see_their_own(self, app, runtime, acme, client):
        for user in ("ana", "ben"):
            await client.post("/users", json={"user_id": user})
        for agent in ("helper", "rival"):
            await client.post("/agents", json={"agent_id": agent, "agent_name": agent})
        project = {"project_id": "apollo", "project_name": "A", "owner_id": "ana"}
        await client.post("/projects", json=project)
        await client.put("/projects/apollo/members/ben", json={"role": "viewer"})
        own = await folder(client, scope="user", user_id="ana")
        shared = await folder(client, scope="project", project_id="apollo")
        domain = await folder(client, scope="agent", agent_id="helper")
        key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")
        async with client_of(app, key.key) as ben:
            seen = {one["folder_id"] for one in done(await ben.get("/folders"))["items"]}
            assert seen == {shared, domain}
            assert (await ben.get(f"/folders/{own}")).status_code == 404
            text = {"content": "Words."}
            refused = await ben.post(f"/folders/{shared}/passages", json=text)
            assert refused.json()["code"] == "read_only_member"
            refused = await ben.post(f"/folders/{domain}/passages", json=text)
            assert refused.json()["code"] == "insufficient_scope"
            await client.put("/projects/apollo/members/ben", json={"role": "editor"})
            assert done(await ben.post(f"/folders/{shared}/passages", json=text))

        key = await make_key(runtime, acme.tenant_id, "write", agent_id="rival")
        async with client_of(app, key.key) as rival:
            assert done(await rival.get("/folders"))["items"] == []
            attached = await client.put(f"/folders/{domain}/agents/rival")
            assert done(attached)["agent_ids"] == ["rival"]
            [seen] = done(await rival.get("/folders"))["items"]
            assert seen["folder_id"] == domain
            refused = await rival.patch(f"/folders/{domain}", json={"folder_name": "X"})
            assert refused.json()["code"] == "key_restricted"
            assert (await client.delete(f"/folders/{domain}/agents/rival")).status_code == 204
            assert done(await rival.get("/folders"))["items"] == []
        again = await client.delete(f"/folders/{domain}/agents/rival")
        assert again.json()["code"] == "folder_not_attached"


class TestUploads:
    @for_each(
        ("name", "content", "content_type", "pages"),
        [
            ("a.txt", REFUNDS.encode(), "text/plain", None),
            ("中文.txt", CHINESE.encode("gb18030"), "text/plain", None),
            ("b.md", f"# Help\n\n{REFUNDS}".encode("utf-16"), "text/markdown", None),
            ("c.html", f"<p>{REFUNDS}</p>".encode(), "text/html", None),
            ("d.pdf", pdf("Refunds take\nfive days.", "Page two."), "application/pdf", 2),
            (
                "e.docx",
                word(REFUNDS),
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                None,
            ),
            ("f.json", b'{"refunds": "five days"}', "application/json", None),
            ("g.csv", b"what,days\nrefunds,5\n", "text/csv", None),
        ],
    )
    async def test_become_passages(self, client, worker, name, content, content_type, pages):
        folder_id = await folder(client)
        file = await ingested(client, folder_id, name, content, tags=["help", "help"])

        assert (file["state"], file["content_type"], file["pages"]) == (
            "completed", content_type, pages
        )  # fmt: skip
        assert file["file_name"] == name
        assert file["tags"] == ["help"]
        assert file["passage_count"] == file["passages_expected"] >= 1
        [first, *_] = await passages_of(client, folder_id, file["file_id"])
        assert first["tags"] == ["help"]
        assert first["start_char"] == 0
        assert first["page"] == (1 if pages else None)
        original = await client.get(f"/folders/{folder_id}/files/{file['file_id']}/content")
        assert original.content == content
        assert original.headers["content-type"].partition(";")[0] == content_type
        assert original.headers["content-disposition"].startswith("attachment;")
        counted = done(await client.get(f"/folders/{folder_id}"))
        assert (counted["file_count"], counted["passage_count"]) == (1, file["passage_count"])

    @for_each(
        ("name", "content", "code"),
        [
            ("a.pdf", pdf("x", password="sesame"), "encrypted"),
            ("b.pdf", pdf(""), "no_text"),
            ("c.pdf", b"%PDF-1.7 and no more", "malformed"),
            ("d.docx", bomb(40), "too_large"),
            ("e.txt", CHINESE.encode() + b"\xff", "encoding"),
            ("f.json", b"{", "malformed"),
            ("g.txt", b"   ", "no_text"),
        ],
    )
    async def test_that_cannot_be_read_say_why(self, client, worker, name, content, code):
        folder_id = await folder(client)
        accepted = await upload(client, folder_id, name, content)
        job = await over(client, accepted["job_id"])
        file = done(await client.get(f"/folders/{folder_id}/files/{accepted['file']['file_id']}"))

        assert (job["status"], job["error_code"]) == ("dead", code)
        assert (file["state"], file["error_code"], file["passage_count"]) == ("error", code, 0)
        assert file["error_detail"]
        assert done(await client.get(f"/folders/{folder_id}/passages"))["items"] == []

    async def test_of_a_form_are_taken(self, client):
        folder_id = await folder(client)
        answer = await client.post(
            f"/folders/{folder_id}/files",
            files={"file": ("dir/plan.txt", b"Hello.", "text/plain")},
            data={"tags": ["a", "B"], "metadata": '{"x": 1}', "on_same_name": "reject"},
        )
        file = done(answer)["file"]
        assert answer.status_code == 202
        assert (file["file_name"], file["tags"], file["metadata"]) == (
            "plan.txt", ["a", "B"], {"x": 1}
        )  # fmt: skip

    @for_each("size", [5, 3 * 2**20 + 1])
    async def test_are_digested_while_they_come(self, client, size):
        folder_id = await folder(client)
        path, content = f"/folders/{folder_id}/files", b"word " * (size // 5 + 1)
        form = await client.post(path, files={"file": ("a.txt", content, "text/plain")})
        raw = await client.post(path, params={"file_name": "b.txt"}, content=content)
        for answer in (form, raw):
            file = done(answer)["file"]
            assert (file["size"], file["sha256"]) == (len(content), sha256(content).hexdigest())
            kept = await client.get(f"{path}/{file['file_id']}/content")
            assert kept.content == content

    @for_each(
        ("params", "content", "status", "code"),
        [
            ({"file_name": "a.pdf"}, b"Hello.", 415, "type_mismatch"),
            ({"file_name": "a.txt"}, pdf("x"), 415, "type_mismatch"),
            ({"file_name": "a.exe"}, b"MZ" + bytes(99), 415, "unsupported_media_type"),
            ({"file_name": "a.txt"}, b"", 422, "empty_file"),
            ({"file_name": "a.txt", "metadata": "[1]"}, b"Hello.", 422, "invalid_request"),
            ({"file_name": "a.txt", "metadata": "{"}, b"Hello.", 422, "invalid_request"),
            ({"file_name": "a.txt", "tags": [""]}, b"Hello.", 422, "invalid_request"),
            ({"file_name": "a.txt", "on_same_name": "x"}, b"Hello.", 422, "invalid_request"),
        ],
    )
    async def test_that_lie_or_are_unclear_are_refused(self, client, params, content, status, code):
        folder_id = await folder(client)
        path = f"/folders/{folder_id}/files"
        answer = await client.post(path, params=params, content=content)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert done(await client.get(path))["items"] == []

    async def test_without_a_name_get_one(self, client):
        folder_id = await folder(client)
        path = f"/folders/{folder_id}/files"
        for content, name in ((b"Hello.", "file.txt"), (pdf("x"), "file.pdf")):
            assert done(await client.post(path, content=content))["file"]["file_name"] == name

    async def test_of_one_name(self, client):
        folder_id = await folder(client)
        first = await upload(client, folder_id, "a.txt", b"One.")
        second = await upload(client, folder_id, "a.txt", b"Two.")
        assert second["file"]["file_name"] == "a (1).txt"
        skipped = await upload(client, folder_id, "a.txt", b"Three.", on_same_name="skip")
        assert skipped["outcome"] == "skipped"
        assert skipped["file"]["file_id"] == first["file"]["file_id"]
        refused = await client.post(
            f"/folders/{folder_id}/files",
            params={"file_name": "a.txt", "on_same_name": "reject"},
            content=b"Four.",
        )
        assert (refused.status_code, refused.json()["code"]) == (409, "file_name_taken")
        replaced = await upload(client, folder_id, "a.txt", b"Five.", on_same_name="replace")
        assert replaced["outcome"] == "replaced"
        assert replaced["file"]["file_id"] != first["file"]["file_id"]
        listed = done(await client.get(f"/folders/{folder_id}/files"))["items"]
        assert sorted(one["file_name"] for one in listed) == ["a (1).txt", "a.txt"]

    @pytest.mark.parametrize(
        ("policy", "names"),
        [("suffix", ["a (1).txt", "a (2).txt", "a.txt"]), ("skip", ["a.txt"]),
         ("replace", ["a.txt"]), ("reject", ["a.txt"])],
    )  # fmt: skip
    async def test_at_once_of_one_name_take_turns(self, client, policy, names):
        folder_id = await folder(client)
        path = f"/folders/{folder_id}/files"
        params = {"file_name": "a.txt", "on_same_name": policy}
        answers = await asyncio.gather(
            *(client.post(path, params=params, content=b"Hello.") for _ in range(3))
        )
        assert {one.status_code for one in answers} <= {200, 202, 409}
        listed = done(await client.get(path))["items"]
        assert sorted(one["file_name"] for one in listed) == names

    async def test_twice_with_one_key_are_one(self, client):
        folder_id = await folder(client)
        path = f"/folders/{folder_id}/files"
        sent = {"params": {"file_name": "a.txt"}, "headers": {"Idempotency-Key": "k"}}
        first = await client.post(path, content=b"Hello.", **sent)
        again = await client.post(path, content=b"Hello.", **sent)
        other = await client.post(path, content=b"Other.", **sent)
        assert again.json() == first.json()
        assert other.json()["code"] == "idempotency_key_reused"
        assert len(done(await client.get(path))["items"]) == 1

    async def test_are_read_anew(self, client, worker):
        folder_id = await folder(client)
        file = await ingested(client, folder_id, "a.txt", REFUNDS.encode())
        before = await passages_of(client, folder_id, file["file_id"])
        path = f"/folders/{folder_id}/files/{file['file_id']}/reingest"
        accepted = done(await client.post(path))
        await over(client, accepted["job_id"])
        after = await passages_of(client, folder_id, file["file_id"])
        assert [one["passage_id"] for one in after] == [one["passage_id"] for one in before]


class TestLimits:
    async def test_of_size(self, client, settings):
        folder_id = await folder(client)
        most = settings.upload_max_bytes
        path = f"/folders/{folder_id}/files"
        for size, status in ((most - 1, 202), (most, 202), (most + 1, 413)):
            answer = await client.post(
                path, params={"file_name": f"{size}.txt"}, content=b"x" * size
            )
            assert answer.status_code == status
        problem = answer.json()
        assert (problem["code"], problem["limit"]) == ("body_too_large", most)
        form = await client.post(path, files={"file": ("b.txt", b"x" * (most + 1))})
        assert form.status_code == 413

    async def test_a_hundred_megabytes_are_refused_early(self, client, settings):
        folder_id = await folder(client)
        sent = 0

        async def endless():
            nonlocal sent
            for _ in range(100):
                sent += 1
                yield b"x" * 1024 * 1024

        path = f"/folders/{folder_id}/files"
        params = {"file_name": "big.txt"}
        declared = await client.post(
            path, params=params, content=endless(), headers={"Content-Length": str(100 * 2**20)}
        )
        assert declared.status_code == 413
        assert sent == 0, "what is declared too long is not read"
        chunked = await client.post(path, params=params, content=endless())
        assert chunked.status_code == 413
        assert sent == settings.upload_max_bytes // 2**20 + 1
        sent = 0
        boundary = {"Content-Type": "multipart/form-data; boundary=x"}
        form = await client.post(path, params=params, content=endless(), headers=boundary)
        assert form.is_client_error
        assert sent <= settings.upload_max_bytes // 2**20 + 1
        assert done(await client.get(path))["items"] == []


class TestPassages:
    async def test_a_long_text_becomes_several(self, client):
        folder_id = await folder(client)
        text = "\n\n".join(f"{number}. {REFUNDS} {CHINESE}" for number in range(60))
        added = done(
            await client.post(
                f"/folders/{folder_id}/passages", json={"content": text, "tags": ["a", "a"]}
            )
        )
        assert len(added["items"]) > 5
        assert "".join("".join(one["content"].split()) for one in added["items"]) == "".join(
            text.split()
        )
        assert added["items"][0]["tags"] == ["a"]
        listed, cursor = [], None
        while True:
            params = {"limit": 4} | ({"cursor": cursor} if cursor else {})
            page = done(await client.get(f"/folders/{folder_id}/passages", params=params))
            listed += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert {one["passage_id"] for one in listed} == {
            one["passage_id"] for one in added["items"]
        }

    async def test_are_not_reached_through_another_folder(self, client):
        mine, other = await folder(client), await folder(client)
        [passage] = done(await client.post(f"/folders/{mine}/passages", json={"content": REFUNDS}))[
            "items"
        ]
        wrong = f"/folders/{other}/passages/{passage['passage_id']}"
        right = f"/folders/{mine}/passages/{passage['passage_id']}"
        assert (await client.get(wrong)).json()["code"] == "passage_not_found"
        assert (await client.delete(wrong)).json()["code"] == "passage_not_found"
        assert done(await client.get(right))["content"] == REFUNDS
        assert (await client.delete(right)).status_code == 204
        assert (await client.get(right)).status_code == 404


class TestSearch:
    async def test_finds_words_and_meaning_in_both_languages(self, client):
        folder_id = await folder(client)
        for text in (REFUNDS, CHINESE, "The office has a ping-pong table.", "会议室在三楼。"):
            await client.post(f"/folders/{folder_id}/passages", json={"content": text})
        for query, best in (
            ("How long do refunds take?", REFUNDS),
            ("退款要多久?", CHINESE),
            ("Where is the ping-pong table?", "The office has a ping-pong table."),
        ):
            for mode in ("hybrid", "lexical"):
                body = {"query": query, "mode": mode, "user_id": "ana"}
                answer = done(await client.post("/passages/search", json=body))
                assert answer["items"][0]["content"] == best
                assert not answer["degraded"]
        body = {"query": "refunds", "explain": True, "folder_ids": [folder_id]}
        explained = done(await client.post("/passages/search", json=body))
        assert explained["items"][0]["explain"]["fused"] == explained["items"][0]["score"]
        assert explained["items"][0]["folder_name"] == "Manuals"
        assert explained["searched"] == 4

    async def test_narrows_by_tags_and_days(self, client):
        folder_id = await folder(client)
        for number, tags in enumerate((["A"], ["A", "b"], ["a"], [])):
            await client.post(
                f"/folders/{folder_id}/passages",
                json={"content": f"Refund rule {number}.", "tags": tags},
            )

        async def found(**body):
            said = {"query": "refund", "user_id": "ana"} | body
            answer = done(await client.post("/passages/search", json=said))
            return sorted(one["content"][12] for one in answer["items"])

        assert await found(tags=["A", "A"]) == ["0", "1"]
        assert await found(tags=["A", "b"], tags_match="all") == ["1"]
        assert await found(tags=["a", "b"]) == ["1", "2"]
        now = datetime.now(UTC)
        assert await found(created_to=(now - timedelta(hours=1)).isoformat()) == []
        assert len(await found(created_from=(now - timedelta(hours=1)).isoformat())) == 4
        listed = done(await client.get(f"/folders/{folder_id}/passages"))["items"]
        moment = listed[-1]["create_time"]
        assert await found(created_from=moment, created_to=moment) == ["0"]

    async def test_looks_where_it_is_told(self, client):
        await client.post("/agents", json={"agent_id": "helper", "agent_name": "H"})
        await client.post("/agents", json={"agent_id": "rival", "agent_name": "R"})
        mine = await folder(client)
        domain = await folder(client, scope="agent", agent_id="helper")
        for place in (mine, domain):
            await client.post(f"/folders/{place}/passages", json={"content": REFUNDS})

        async def folders(**body):
            answer = done(await client.post("/passages/search", json={"query": "refunds"} | body))
            return {one["folder_id"] for one in answer["items"]}

        assert await folders(folder_ids=[mine, domain]) == {mine, domain}
        assert await folders(user_id="ana") == {mine}
        assert await folders(agent_id="helper") == {domain}
        assert await folders(agent_id="rival") == set()
        await client.put(f"/folders/{domain}/agents/rival")
        assert await folders(agent_id="rival") == {domain}
        assert await folders(user_id="ana", agent_id="helper") == {mine, domain}
        assert await folders(folder_ids=[mine]) == {mine}
        assert await folders(folder_ids=["nothing"]) == set()

    async def test_a_blank_query_finds_nothing(self, client, stranger):
        folder_id = await folder(client)
        for _ in range(7):
            await client.post(f"/folders/{folder_id}/passages", json={"content": REFUNDS})
        path, whose = "/passages/search", {"user_id": "ana"}
        blank = done(await client.post(path, json={"query": " "} | whose))
        assert blank["items"] == []
        named = {"query": "refunds"} | whose
        assert len(done(await client.post(path, json=named))["items"]) == 5
        assert done(await stranger.post(path, json=named))["items"] == []

    async def test_says_whose_unless_the_key_does(self, app, runtime, acme, client):
        folder_id = await folder(client)
        done(await client.post(f"/folders/{folder_id}/passages", json={"content": REFUNDS}))
        path, words = "/passages/search", {"query": "refunds"}
        for body in (words, {"query": " "}):
            refused = await client.post(path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (422, "selector_required")
            [error] = refused.json()["errors"]
            assert error["location"] == ["body", "folder_ids"]
            for name in ("folder_ids", "user_id", "agent_id", "project_id"):
                assert name in error["detail"]
        acting = await client.post(path, json=words, headers={"KeMem-User": "ana"})
        assert len(done(acting)["items"]) == 1
        for place in ({"user_id": "ana"}, {"agent_id": "default"}):
            key = await make_key(runtime, acme.tenant_id, "read", **place)
            async with client_of(app, key.key) as bound:
                assert len(done(await bound.post(path, json=words))["items"]) == 1


class TestDeleting:
    async def test_a_file_takes_its_passages_and_leaves_word(self, client, worker):
        folder_id = await folder(client)
        text = "I live in Munich. I work as a nurse at the city hospital. I love hiking."
        file = await ingested(client, folder_id, "about.txt", text.encode())
        ordered = done(await client.post(f"/files/{file['file_id']}/extract", json={}))
        assert ordered["extractor"].startswith("rules/")
        job = await over(client, ordered["job_id"])
        assert job["status"] == "succeeded", job
        params = {"user_id": "ana", "source": "knowledge_base"}
        found = done(await client.get("/memories", params=params))["items"]
        [passage] = await passages_of(client, folder_id, file["file_id"])
        assert found, "nothing was extracted"
        for memory in found:
            assert memory["source_id"] == file["file_id"]
            assert memory["evidence"] == [passage["passage_id"]]
            assert memory["source_deleted_at"] is None

        path = f"/folders/{folder_id}/files/{file['file_id']}"
        dry = done(await client.delete(path, params={"dry_run": True}))
        assert (dry["passages"], dry["memories"]) == (1, len(found))
        gone = done(await client.delete(path))
        assert gone["memories"] == len(found)
        assert (await client.get(path)).json()["code"] == "file_not_found"
        assert done(await client.get(f"/folders/{folder_id}/passages"))["items"] == []
        left = done(await client.get("/memories", params=params))["items"]
        assert all(memory["source_deleted_at"] for memory in left)
        searched = await client.post("/memories/search", json={"query": "Munich", "user_id": "ana"})
        assert done(searched)["results"][0]["source_deleted_at"]

    async def test_only_a_read_file_is_extracted(self, client):
        folder_id = await folder(client)
        accepted = await upload(client, folder_id, "a.txt", b"Hello.")
        answer = await client.post(f"/files/{accepted['file']['file_id']}/extract", json={})
        assert answer.json()["code"] == "file_not_ready"
        missing = await client.post("/files/nothing/extract", json={})
        assert missing.json()["code"] == "file_not_found"
