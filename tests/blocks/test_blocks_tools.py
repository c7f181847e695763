"""Edits by tools: the session says whose block it is, the model only names a label."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.conversation.sessions.schemas import SessionNotFoundError
from app.errors import DisabledError
from app.identity.agents.errors import BlockLimitError
from app.identity.tenants.errors import KeyRestrictedError
from app.platform.work.unit import MemoryDisabledError, MemoryPausedError, Work
from app.prompting.blocks.edit_service import BlockEditService
from app.prompting.blocks.errors import (
    BlockReadOnlyError,
    LabelNotFoundError,
    LineNumbersError,
    TextNotFoundError,
)
from app.prompting.blocks.schemas import BlockAppend, BlockReplace, BlockRewrite
from app.runtime import Runtime
from tests.blocks.conftest import Desk, desk_of
from tests.support.api import counts, ok
from tests.support.tenants import Caller, make_key
from tests.support.world import rows_of

pytestmark = pytest.mark.usefixtures("people")


class TestSharedBlocks:
    async def test_an_edit_is_seen_by_every_agent_and_user(
        self, client: AsyncClient, desk: Desk, make: Any
    ) -> None:
        await make("b1", value="Acme")
        ok(await client.put("/agents/a2/blocks/b1"))

        edited = await desk.append("s1", "notes", "sells kites")

        assert (edited.block_id, edited.version) == ("b1", 2)
        for session_id in ("s1", "s2", "s3"):
            assert await desk.said(session_id) == {"notes": "Acme\nsells kites"}

    async def test_the_history_says_in_which_session(
        self, client: AsyncClient, desk: Desk, acme: Caller, make: Any
    ) -> None:
        await make("b1")
        await desk.append("s1", "notes", "x")

        rows = ok(await client.get("/blocks/b1/history"))["items"]

        assert [(row["event"], row["session_id"]) for row in rows] == [
            ("append", "s1"), ("create", None),
        ]  # fmt: skip
        assert rows[0]["actor"] == acme.key_id


class TestTemplates:
    async def test_the_first_edit_makes_the_users_own_copy(
        self, client: AsyncClient, desk: Desk, make: Any
    ) -> None:
        made = await make(
            "b1", "human", value="Name: unknown", limit=77, tags=["x"], metadata={"a": 1}
        )
        assert await desk.said("s1") == await desk.said("s2") == {"human": "Name: unknown"}

        copy = await desk.edit("s1", "human", BlockReplace(old="unknown", new="Ana"))

        assert await desk.said("s1") == {"human": "Name: Ana"}
        assert await desk.said("s2") == {"human": "Name: unknown"}
        assert ok(await client.get("/blocks/b1")) == made
        shown = ok(await client.get(f"/blocks/{copy.block_id}"))
        taken = ("label", "limit", "description", "tags", "metadata", "read_only", "hidden")
        assert {name: shown[name] for name in taken} == {name: made[name] for name in taken}
        assert (shown["user_id"], shown["template_id"]) == ("ana", "b1")
        assert (shown["per_user"], shown["version"]) == (False, 2)

    async def test_further_edits_change_the_copy(
        self, client: AsyncClient, desk: Desk, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", "human", value="a")
        first = await desk.append("s1", "human", "b")

        second = await desk.append("s1", "human", "c")

        assert (second.block_id, second.value) == (first.block_id, "a\nb\nc")
        assert (await counts(dsn, acme.tenant_id))["blocks"] == 2
        rows = ok(await client.get(f"/blocks/{first.block_id}/history"))["items"]
        assert [(row["event"], row["value"]) for row in rows] == [
            ("append", "a\nb\nc"), ("append", "a\nb"), ("copy", "a"),
        ]  # fmt: skip

    async def test_users_do_not_see_each_others_words(self, desk: Desk, make: Any) -> None:
        await make("b1", "human")
        await desk.append("s1", "human", "Ana is 34.")
        await desk.append("s2", "human", "本住在柏林。")

        assert await desk.said("s1") == {"human": "Ana is 34."}
        assert await desk.said("s2") == {"human": "本住在柏林。"}

    async def test_a_copy_goes_where_its_template_goes(
        self, client: AsyncClient, desk: Desk, make: Any
    ) -> None:
        await make("b1", "human")
        await desk.append("s1", "human", "Ana")
        assert await desk.said("s3") == {}

        ok(await client.put("/agents/a2/blocks/b1"))
        assert await desk.said("s3") == {"human": "Ana"}
        assert (await client.delete("/agents/a1/blocks/b1")).status_code == 204

        assert (await desk.said("s1"), await desk.said("s3")) == ({}, {"human": "Ana"})

    async def test_an_edit_that_changes_nothing_makes_no_copy(
        self, desk: Desk, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", "human", value="a")
        before = await rows_of(dsn, acme.tenant_id)

        unchanged = await desk.edit("s1", "human", BlockRewrite(value="a"))
        with pytest.raises(TextNotFoundError):
            await desk.edit("s1", "human", BlockReplace(old="b", new="c"))

        assert unchanged.block_id == "b1"
        assert await rows_of(dsn, acme.tenant_id) == before

    @pytest.mark.parametrize(("length", "fits"), [(9, True), (10, True), (11, False)])
    async def test_a_copy_holds_the_limit_of_its_template(
        self, desk: Desk, dsn: str, acme: Caller, make: Any, length: int, fits: bool
    ) -> None:
        await make("b1", "human", limit=10)
        edit = BlockRewrite(value="中" * length)

        if fits:
            assert (await desk.edit("s1", "human", edit)).chars_current == length
            with pytest.raises(BlockLimitError):
                await desk.append("s1", "human", "中" * (10 - length + 1))
        else:
            with pytest.raises(BlockLimitError):
                await desk.edit("s1", "human", edit)
        assert (await counts(dsn, acme.tenant_id))["blocks"] == (2 if fits else 1)

    async def test_copies_of_a_read_only_template_are_read_only(
        self, client: AsyncClient, desk: Desk, make: Any
    ) -> None:
        await make("b1", "human", value="a")
        copy = await desk.append("s1", "human", "b")
        changes = {"read_only": True, "label": "person"}

        ok(await client.patch("/blocks/b1", json=changes, headers={"If-Match": "1"}))

        assert await desk.said("s1") == {"person": "a\nb"}
        shown = ok(await client.get(f"/blocks/{copy.block_id}"))
        assert (shown["label"], shown["read_only"], shown["version"]) == ("person", True, 3)
        for session_id in ("s1", "s2"):
            with pytest.raises(BlockReadOnlyError):
                await desk.append(session_id, "person", "c")
        ok(await client.patch("/blocks/b1", json={"hidden": True}, headers={"If-Match": "2"}))
        assert await desk.said("s1") == {}

    async def test_a_copy_is_neither_moved_nor_renamed(
        self, client: AsyncClient, desk: Desk, make: Any
    ) -> None:
        await make("b1", "human", value="a")
        path = f"/blocks/{(await desk.append('s1', 'human', 'b')).block_id}"

        for response in (
            await client.put(f"/agents/a2{path}"),
            await client.delete(f"/agents/a1{path}"),
            await client.patch(path, json={"label": "x"}, headers={"If-Match": "*"}),
            await client.post(
                "/agents", json={"agent_name": "B", "block_ids": [path.removeprefix("/blocks/")]}
            ),
        ):
            assert (response.status_code, response.json()["code"]) == (409, "bound_to_template")

    async def test_a_template_with_copies_goes_when_that_is_confirmed(
        self, client: AsyncClient, desk: Desk, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", "human")
        await desk.append("s1", "human", "Ana")
        await desk.append("s2", "human", "Ben")

        refused = await client.delete("/blocks/b1")
        counted = ok(await client.delete("/blocks/b1", params={"dry_run": True}))
        assert (refused.status_code, refused.json()["code"]) == (409, "confirmation_required")
        assert (counted["copies"], counted["agents"]) == (2, 1)
        assert (await counts(dsn, acme.tenant_id))["blocks"] == 3
        ok(await client.delete("/blocks/b1", params={"confirm": True}))

        rows = await counts(dsn, acme.tenant_id)
        assert (rows["blocks"], rows["agent_blocks"], rows["block_history"]) == (0, 0, 0)


class TestWhatAModelSees:
    async def test_own_block_of_a_user_replaces_the_shared_block(
        self, desk: Desk, make: Any
    ) -> None:
        await make("b1", "notes", value="for all")
        await make("b2", "notes", value="for Ana", user_id="ana")

        edited = await desk.append("s1", "notes", "x")

        assert edited.block_id == "b2"
        assert await desk.said("s1") == {"notes": "for Ana\nx"}
        assert await desk.said("s2") == {"notes": "for all"}

    async def test_persona_and_human_come_first(self, desk: Desk, make: Any) -> None:
        for label in ("zeta", "human", "备注", "Alpha", "persona", "beta"):
            await make(f"b-{len(label)}-{ord(label[0])}", label)

        assert [block.label for block in await desk.seen("s1")] == [
            "persona", "human", "Alpha", "beta", "zeta", "备注",
        ]  # fmt: skip

    async def test_model_sees_nothing_hidden_detached_or_of_others(
        self, client: AsyncClient, desk: Desk, make: Any, stranger: AsyncClient
    ) -> None:
        await make("b1", "hidden", hidden=True)
        await make("b3", "bens", user_id="ben")
        await make("b4", "other agent", agent_id="a2")
        ok(await client.post("/blocks", json={"label": "free"}), 201)

        assert await desk.said("s1") == {}
        for label in ("hidden", "bens", "other agent", "free"):
            with pytest.raises(LabelNotFoundError):
                await desk.append("s1", label, "x")

    async def test_a_label_that_is_not_there_is_answered_with_those_that_are(
        self, desk: Desk, make: Any
    ) -> None:
        await make("b1", "persona")
        await make("b2", "notes")

        with pytest.raises(LabelNotFoundError) as refused:
            await desk.append("s1", "nots", "x")

        assert refused.value.members == {"label": "nots", "labels": ["persona", "notes"]}


class TestRefusals:
    async def test_a_read_only_block_is_not_edited(
        self, client: AsyncClient, desk: Desk, make: Any
    ) -> None:
        made = await make("b1", read_only=True, value="a")

        with pytest.raises(BlockReadOnlyError):
            await desk.append("s1", "notes", "x")

        assert ok(await client.get("/blocks/b1")) == made

    async def test_displayed_line_numbers_are_refused(self, desk: Desk, make: Any) -> None:
        await make("b1")

        with pytest.raises(LineNumbersError):
            await desk.append("s1", "notes", "1→ x")

    async def test_nothing_is_noted_where_nothing_is_remembered(
        self, client: AsyncClient, desk: Desk, make: Any
    ) -> None:
        await make("b1")
        for path, back in (("/sessions/s1", True), ("/agents/a1", True)):
            ok(await client.patch(path, json={"memory_enabled": False}))
            with pytest.raises(MemoryPausedError):
                await desk.append("s1", "notes", "x")
            ok(await client.patch(path, json={"memory_enabled": back}))

        assert (await desk.append("s1", "notes", "x")).value == "x"

    async def test_edit_for_a_disabled_user_or_agent_is_refused(
        self, client: AsyncClient, desk: Desk, make: Any
    ) -> None:
        await make("b1")
        for path in ("/users/ana", "/agents/a1"):
            ok(await client.patch(path, json={"status": "disabled"}))
            with pytest.raises(DisabledError):
                await desk.append("s1", "notes", "x")
            ok(await client.patch(path, json={"status": "enabled"}))

        assert (await desk.append("s1", "notes", "x")).value == "x"

    async def test_nothing_is_written_while_memory_is_switched_off(
        self, runtime: Runtime, acme: Caller, make: Any
    ) -> None:
        await make("b1")
        principal = await runtime.identification.identify(acme.key)
        editing = BlockEditService(Work(runtime.database, enabled=False), runtime.saving_rules.gate)

        with pytest.raises(MemoryDisabledError):
            await editing.edit(principal, "s1", "notes", BlockAppend(text="x"))

    async def test_unknown_session_is_not_found(
        self, runtime: Runtime, other: Caller, desk: Desk, make: Any
    ) -> None:
        await make("b1")
        stranger = await desk_of(runtime, other.key)

        for whose, session_id in ((desk, "s9"), (stranger, "s1")):
            with pytest.raises(SessionNotFoundError):
                await whose.append(session_id, "notes", "x")
            with pytest.raises(SessionNotFoundError):
                await whose.seen(session_id)


class TestRestrictedKeys:
    async def test_key_of_a_user_edits_blocks_of_that_user(
        self, app: FastAPI, runtime: Runtime, acme: Caller, make: Any
    ) -> None:
        await make("b1", "human", value="Name?")
        await make("b2", "notes", value="for all")
        await make("b3", "diary", user_id="ana")
        key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        own = await desk_of(runtime, key.key)

        assert (await own.append("s1", "human", "Ana")).user_id == "ana"
        assert (await own.append("s1", "diary", "Sun.")).block_id == "b3"
        with pytest.raises(KeyRestrictedError):
            await own.append("s1", "notes", "x")
        with pytest.raises(SessionNotFoundError):
            await own.append("s2", "human", "x")
        assert await own.said("s1") == {
            "human": "Name?\nAna", "diary": "Sun.", "notes": "for all",
        }  # fmt: skip

    async def test_a_key_of_an_agent_edits_in_its_sessions(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, make: Any
    ) -> None:
        """Ana is a guest of a2: at home elsewhere."""
        await make("b1", "human", agent_id="a2")
        key = await make_key(runtime, acme.tenant_id, "write", agent_id="a2")
        own = await desk_of(runtime, key.key)

        for text in ("one", "two"):
            edited = await own.append("s3", "human", text)

        assert (edited.value, edited.user_id) == ("one\ntwo", "ana")
        with pytest.raises(SessionNotFoundError):
            await own.append("s1", "human", "x")
