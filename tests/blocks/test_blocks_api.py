"""Blocks through the public routes: made, read, listed, changed, deleted."""

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from sqlalchemy import text

from app.prompting.blocks.repository import BlockRepository
from app.runtime import Runtime
from tests.support.api import counts, dump, every_page, execute, fields, ok, problem, tables_with
from tests.support.crud_contract import CrudContract
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key
from tests.support.world import rows_of

ANYWAY = {"If-Match": "*"}


async def make(client: AsyncClient, label: str = "notes", **given) -> dict:
    return ok(await client.post("/blocks", json={"label": label} | given), 201)


async def patch(client: AsyncClient, block_id: str, **changes):
    return await client.patch(f"/blocks/{block_id}", json=changes, headers=ANYWAY)


class TestBlocks(CrudContract):
    path = "/blocks"
    id_field = "block_id"
    prefix = "blk_"
    body = {"label": "notes", "value": "12345"}
    full = {
        "label": "项目 notes-2",
        "value": "中文 🤖b",
        "limit": 100,
        "description": "What to keep in mind. 要记住的事。",
        "tags": ["甲", "b"],
        "metadata": {"语言": ["中文"], "nested": {"a": None}},
        "read_only": True,
    }
    nullable = {"description"}

    @pytest.fixture
    async def client(self, app: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
        """Changes name whatever version there is, as this room wants one."""
        async with client_of(app, acme.key) as opened:
            opened.headers.update(ANYWAY)
            yield opened

    @pytest.fixture
    async def stranger(self, app: FastAPI, other: Caller) -> AsyncIterator[AsyncClient]:
        async with client_of(app, other.key) as opened:
            opened.headers.update(ANYWAY)
            yield opened


class TestNewBlock:
    async def test_block_holds_five_thousand_characters_by_default(
        self, client: AsyncClient
    ) -> None:
        made = await make(client)

        assert (made["value"], made["limit"], made["chars_current"]) == ("", 5000, 0)
        assert (made["read_only"], made["hidden"], made["per_user"]) == (False, False, False)
        assert (made["user_id"], made["template_id"], made["version"]) == (None, None, 1)

    async def test_characters_are_code_points(self, client: AsyncClient) -> None:
        assert (await make(client, value="中文🤖é"))["chars_current"] == 4

    async def test_standard_labels_get_a_description(self, client: AsyncClient) -> None:
        human, persona = await make(client, "human"), await make(client, "persona")
        own = await make(client, "human", description="Only her name.", per_user=False)

        assert "person you talk to" in human["description"]
        assert "Who you are" in persona["description"]
        assert (human["per_user"], persona["per_user"]) == (True, True)
        assert (own["description"], own["per_user"]) == ("Only her name.", False)

    @for_each("label", ["", " a", "a ", "a<b", 'a"b', "a\nb", "a" * 51, "-"])
    async def test_a_label_is_a_plain_name(self, client: AsyncClient, label: str) -> None:
        response = await client.post("/blocks", json={"label": label})

        assert fields(problem(response, 422, "invalid_request")) == ["body.label"]

    @pytest.mark.parametrize("label", ["a", "人", "a" * 50, "to do", "a_b-c"])
    async def test_a_label_may_be_in_any_script(self, client: AsyncClient, label: str) -> None:
        assert (await make(client, label))["label"] == label

    async def test_nul_is_refused_in_every_text(self, client: AsyncClient) -> None:
        block_id = (await make(client, value="a"))["block_id"]

        for path, body in (
            ("/blocks", {"label": "x", "value": "a\x00b"}),
            ("/blocks", {"label": "x", "description": "a\x00b"}),
            (f"/blocks/{block_id}/append", {"text": "\x00"}),
            (f"/blocks/{block_id}/insert", {"text": "\x00"}),
            (f"/blocks/{block_id}/replace", {"old": "a", "new": "\x00"}),
            (f"/blocks/{block_id}/rewrite", {"value": "\x00"}),
        ):
            response = await client.post(path, json=body, headers=ANYWAY)
            problem(response, 422, "invalid_request")
        problem(await patch(client, block_id, value="\x00"), 422, "invalid_request")
        assert ok(await client.get(f"/blocks/{block_id}"))["version"] == 1

    async def test_a_block_of_a_user_is_no_template(self, client: AsyncClient) -> None:
        ok(await client.post("/agents", json={"agent_id": "a1", "agent_name": "A"}), 201)
        ok(await client.post("/users", json={"user_id": "ana", "agent_id": "a1"}), 201)

        both = {"label": "human", "user_id": "ana", "per_user": True}
        problem(await client.post("/blocks", json=both), 422, "invalid_request")

        assert (await make(client, "human", user_id="ana"))["per_user"] is False

    async def test_an_unknown_user_or_agent_is_missing_and_nothing_is_made(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        for given, code in (
            ({"user_id": "nobody"}, "user_not_found"),
            ({"agent_id": "nobody"}, "agent_not_found"),
        ):
            response = await client.post("/blocks", json={"label": "a"} | given)
            problem(response, 404, code)

        assert (await counts(dsn, acme.tenant_id))["blocks"] == 0


class TestList:
    async def test_list_of_blocks_can_be_narrowed(self, client: AsyncClient) -> None:
        ok(await client.post("/agents", json={"agent_id": "a1", "agent_name": "A"}), 201)
        ok(await client.post("/users", json={"user_id": "ana", "agent_id": "a1"}), 201)
        await make(client, "rules", block_id="b1", tags=["x", "y"], agent_id="a1")
        await make(client, "rules", block_id="b2", description="Ab 规则% here", user_id="ana")
        await make(client, "tone", block_id="b3", tags=["y"], hidden=True)

        async def listed(**params) -> list[str]:
            return [row["block_id"] for row in await every_page(client, "/blocks", **params)]

        assert await listed() == ["b2", "b1"]
        assert await listed(include_hidden=True) == ["b3", "b2", "b1"]
        assert await listed(label="rules", limit=1) == ["b2", "b1"]
        assert await listed(tag="y", include_hidden=True) == ["b3", "b1"]
        assert await listed(tag="z") == []
        assert await listed(agent_id="a1") == ["b1"]
        assert await listed(user_id="ana") == ["b2"]
        assert await listed(query="AB 规则") == ["b2"]
        assert await listed(query="RUL") == ["b2", "b1"]
        # Letters of patterns are letters.
        assert await listed(query="规则%") == ["b2"]
        assert await listed(query="%here") == []

    async def test_an_unknown_filter_is_refused(self, client: AsyncClient) -> None:
        response = await client.get("/blocks", params={"colour": "red"})

        problem(response, 422, "invalid_request")


class TestVersions:
    async def test_a_change_that_names_no_version_is_refused(self, client: AsyncClient) -> None:
        block_id = (await make(client, value="a"))["block_id"]

        for response in (
            await client.patch(f"/blocks/{block_id}", json={"value": "b"}),
            await client.post(f"/blocks/{block_id}/rewrite", json={"value": "b"}),
            await client.post(f"/blocks/{block_id}/undo"),
            await client.post(f"/blocks/{block_id}/redo"),
        ):
            problem(response, 428, "version_required")
        assert ok(await client.get(f"/blocks/{block_id}"))["version"] == 1

    async def test_a_stale_version_is_refused_everywhere(self, client: AsyncClient) -> None:
        block_id = (await make(client, value="one"))["block_id"]
        ok(await patch(client, block_id, value="one two"))
        stale = {"If-Match": "1"}

        for response in (
            await client.patch(f"/blocks/{block_id}", json={"value": "b"}, headers=stale),
            *[
                await client.post(f"/blocks/{block_id}/{verb}", json=body, headers=stale)
                for verb, body in (
                    ("append", {"text": "b"}),
                    ("replace", {"old": "one", "new": "b"}),
                    ("insert", {"text": "b"}),
                    ("rewrite", {"value": "b"}),
                    ("undo", None),
                    ("redo", None),
                )
            ],
        ):
            assert problem(response, 409, "version_conflict")["current_version"] == 2
        assert ok(await client.get(f"/blocks/{block_id}"))["value"] == "one two"

    async def test_patch_without_a_change_writes_nothing(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        made = await make(client, value="one\ntwo", tags=["x"])
        path = f"/blocks/{made['block_id']}"
        before = await rows_of(dsn, acme.tenant_id)

        for response in (
            await patch(client, made["block_id"], value="one\ntwo", tags=["x"], limit=5000),
            await client.post(f"{path}/replace", json={"old": "one", "new": "one"}),
            await client.post(f"{path}/rewrite", json={"value": "one\ntwo"}, headers=ANYWAY),
        ):
            assert ok(response) == made

        assert await rows_of(dsn, acme.tenant_id) == before


class TestReadOnly:
    async def test_read_only_block_is_changed_by_an_admin_only(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        made = await make(client, value="Be kind.", read_only=True)
        path = f"/blocks/{made['block_id']}"

        for verb, body in (
            ("append", {"text": "b"}),
            ("replace", {"old": "kind", "new": "b"}),
            ("insert", {"text": "b"}),
            ("rewrite", {"value": "b"}),
            ("undo", None),
            ("redo", None),
        ):
            response = await client.post(f"{path}/{verb}", json=body, headers=ANYWAY)
            assert problem(response, 409, "block_read_only")["label"] == "notes"
        writer = await make_key(runtime, acme.tenant_id, "write")
        async with client_of(app, writer.key) as other:
            for changes in ({"value": "b"}, {"read_only": False}):
                refused = await patch(other, made["block_id"], **changes)
                problem(refused, 403, "insufficient_scope")
            problem(await other.delete(path), 403, "insufficient_scope")
        assert ok(await client.get(path)) == made

        assert ok(await patch(client, made["block_id"], value="Be brief."))["version"] == 2
        opened = ok(await patch(client, made["block_id"], read_only=False))
        assert (opened["value"], opened["read_only"]) == ("Be brief.", False)

    async def test_writer_may_make_a_block_read_only(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        made = await make(client)
        writer = await make_key(runtime, acme.tenant_id, "write")

        async with client_of(app, writer.key) as other:
            assert ok(await patch(other, made["block_id"], read_only=True))["read_only"]


class TestDelete:
    async def test_deletion_leaves_nothing_of_a_block(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        for number in (1, 2):
            ok(
                await client.post("/agents", json={"agent_id": f"a{number}", "agent_name": "A"}),
                201,
            )
        made = ok(
            await client.post(
                "/blocks",
                json={"label": "notes", "value": "She is called Wilhelmina.", "agent_id": "a1"},
                headers={"Idempotency-Key": "one"},
            ),
            201,
        )
        path = f"/blocks/{made['block_id']}"
        ok(await client.put(f"/agents/a2{path}"))
        body, key = {"text": "And she sings."}, {"Idempotency-Key": "two"}
        ok(await client.post(f"{path}/append", json=body, headers=key))

        counted = ok(await client.delete(path, params={"dry_run": True}))
        assert counted == {
            "block_id": made["block_id"], "agents": 2, "copies": 0, "dry_run": True,
        }  # fmt: skip
        assert ok(await client.get(path))["version"] == 2
        gone = ok(await client.delete(path))

        assert gone == counted | {"dry_run": False}
        problem(await client.get(path), 404, "block_not_found")
        rows = await dump(dsn, acme.tenant_id)
        assert tables_with("Wilhelmina", rows) == []
        assert tables_with(made["block_id"], rows) == []
        assert ok(await client.get("/agents/a1/blocks"))["items"] == []

    async def test_kept_answers_about_other_blocks_stay(self, client: AsyncClient) -> None:
        first = await make(client)
        body, key = {"label": "other"}, {"Idempotency-Key": "one"}
        second = ok(await client.post("/blocks", json=body, headers=key), 201)

        ok(await client.delete(f"/blocks/{first['block_id']}"))

        again = await client.post("/blocks", json=body, headers=key)
        assert again.json() == second
        assert again.headers["Idempotency-Replayed"] == "true"

    @pytest.mark.parametrize("whose", [None, "ana"])
    async def test_large_answers_about_other_things_are_not_read(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, whose: str | None
    ) -> None:
        ok(await client.post("/users", json={"user_id": "ana"}), 201)
        block_id = (await make(client, user_id=whose))["block_id"]
        # Of the block's user and of another, in pages of their own: no compression makes it small.
        await execute(
            dsn,
            "INSERT INTO idempotency_keys (tenant_id, key_id, idempotency_key, user_id, "
            "request_hash, status, answer, expires_at) "
            "SELECT $1, 'key', n::text, 'bob', '', 200, (SELECT convert_to('{\"state\": ', 'UTF8') "
            "|| string_agg(sha512((i * n)::text::bytea), '') FROM generate_series(1, 4000) i), "
            "now() + interval '1 hour' FROM generate_series(1, 4) n",
            acme.tenant_id,
        )
        principal = await runtime.identification.identify(acme.key)

        async with runtime.database.begin(acme.tenant_id) as db:
            blocks = BlockRepository(db, principal.access)
            await blocks.delete(await blocks.get(block_id, lock=True))
            read = await db.scalar(
                text(
                    "SELECT pg_stat_get_xact_blocks_fetched(reltoastrelid) FROM pg_class "
                    "WHERE relname = 'idempotency_keys'"
                )
            )

        # A page of the beginning of each, at most; all of them are 130 pages.
        assert read <= 8


class TestRepeatedEdits:
    @pytest.mark.parametrize(
        ("verb", "body"),
        [
            ("append", {"text": "more"}),
            ("insert", {"text": "more", "line": 0}),
            ("replace", {"old": "two", "new": "two two"}),
            ("rewrite", {"value": "other"}),
            ("undo", None),
        ],
    )
    async def test_repeated_request_has_one_effect(
        self, client: AsyncClient, verb: str, body
    ) -> None:
        block_id = (await make(client, value="one"))["block_id"]
        ok(await patch(client, block_id, value="two"))
        ok(await patch(client, block_id, value="two three"))
        headers = ANYWAY | {"Idempotency-Key": "k"}
        first = await client.post(f"/blocks/{block_id}/{verb}", json=body, headers=headers)

        again = await client.post(f"/blocks/{block_id}/{verb}", json=body, headers=headers)

        assert ok(first)["version"] == 4
        assert again.json() == first.json()
        assert ok(await client.get(f"/blocks/{block_id}"))["version"] == 4
