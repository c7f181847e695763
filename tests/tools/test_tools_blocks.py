"""Edits of blocks by tools: effects, results, and when a result is rendered."""

import asyncio
import re
from time import perf_counter
from typing import Any

import pytest
from httpx import AsyncClient

from app.language.llm.tokens import EstimatedTokens
from app.platform.work.idempotency import IdempotencyKey
from app.prompting.tools.caller import DeferredAnswer, ToolCaller
from app.prompting.tools.tool_results import Budget, ToolResult
from app.prompting.tools.toolset import TOOLS
from tests.support.api import append, dump, ok, tables_with
from tests.support.locks import holding, until_somebody_waits
from tests.support.rows import for_each
from tests.support.threads import watched_threads
from tests.support.tools import called, refusal, result


class TestBlocks:
    @pytest.fixture
    async def blocks(self, client: AsyncClient) -> AsyncClient:
        """The API, with a session s1 of an agent that has blocks."""
        body = {
            "agent_id": "helper",
            "agent_name": "Helper",
            "memory_blocks": [
                {"label": "human", "value": "Her name is Ana.", "limit": 60, "per_user": False},
                {"label": "persona", "value": "You are patient.", "read_only": True},
            ],
        }
        ok(await client.post("/agents", json=body), 201)
        await append(client, "s1", "Hello.", agent_id="helper")
        return client

    async def value(self, client: AsyncClient, label: str = "human") -> str:
        rows = ok(await client.get("/blocks", params={"agent_id": "helper", "label": label}))
        return rows["items"][0]["value"]

    async def test_each_edit_is_told_with_what_the_block_says_then(self, blocks) -> None:
        steps = [
            ("core_memory_append", {"content": "Lives in Rome."},
             "Her name is Ana.\nLives in Rome."),
            ("core_memory_replace", {"old_content": "Rome", "new_content": "Bonn"},
             "Her name is Ana.\nLives in Bonn."),
            ("memory_insert", {"content": "Has a cat.", "line": 1},
             "Her name is Ana.\nHas a cat.\nLives in Bonn."),
            ("memory_rethink", {"content": "Ana, Bonn, one cat."}, "Ana, Bonn, one cat."),
        ]  # fmt: skip

        for tool, told, expected in steps:
            answer = await called(blocks, tool, {"label": "human"} | told)
            assert answer["ok"], answer
            assert all(line in answer["result"] for line in expected.split("\n"))
            assert answer["data"]["chars_current"] == len(expected)
            assert answer["data"]["chars_limit"] == 60
            assert await self.value(blocks) == expected

    async def test_what_a_block_says_is_escaped(self, blocks) -> None:
        told = {"label": "human", "content": "</value></block> <b>"}

        text = await result(blocks, "memory_rethink", told)

        assert text.count("</value>") == 1
        assert "<b>" not in text

    async def test_an_edit_at_the_limit_fits_and_above_it_says_how_much_must_go(
        self, blocks
    ) -> None:
        at, above = "x" * 60, "x" * 67

        assert (await called(blocks, "memory_rethink", {"label": "human", "content": at}))["ok"]
        text = await refusal(blocks, "memory_rethink", {"label": "human", "content": above})

        assert "has 60 characters now, would have 67, and may have 60" in text
        assert "in 7 characters less" in text
        assert "Do not send the same again" in text
        assert await self.value(blocks) == at

    async def test_a_model_that_does_what_the_error_says_is_done_with_the_next_call(
        self, blocks
    ) -> None:
        """The limit error sent models into loops; this one follows it to the letter."""
        line = "She was born in Trondheim in the spring of 1987, in the old hospital."
        error = await refusal(blocks, "core_memory_append", {"label": "human", "content": line})

        less = int(re.search(r"in (\d+) characters less", error)[1])
        answer = await called(
            blocks, "core_memory_append", {"label": "human", "content": line[: len(line) - less]}
        )

        assert answer["ok"]
        assert answer["data"]["chars_current"] == 60

    @for_each(
        ("tool", "told", "advice"),
        [
            ("core_memory_append", {"label": "pets", "content": "A cat."}, "human"),
            ("core_memory_append", {"label": "persona", "content": "Rude."}, "cannot be changed"),
            ("core_memory_append", {"label": "human", "content": ""}, "content: "),
            ("core_memory_append", {"label": "human"}, "content: is required"),
            ("core_memory_replace", {"label": "human", "old_content": "Ben", "new_content": "B"},
             "old_content does not stand in the block"),
            ("core_memory_replace", {"label": "human", "old_content": "a", "new_content": "B"},
             "2 times and must stand there exactly once"),
            ("core_memory_replace",
             {"label": "human", "old_content": "1→ Her name", "new_content": "B"}, "line numbers"),
            ("memory_insert", {"label": "human", "content": "A cat.", "line": 9}, "`line`"),
            ("memory_rethink", {"label": "human", "content": "a\x00b"}, "NUL"),
        ],
    )  # fmt: skip
    async def test_an_edit_that_cannot_be_made_says_why(self, blocks, tool, told, advice) -> None:
        text = await refusal(blocks, tool, told)

        assert advice in text
        assert await self.value(blocks) == "Her name is Ana."
        assert "PATCH" not in text

    async def test_one_key_appends_once(self, blocks) -> None:
        body = {"session_id": "s1", "arguments": {"label": "human", "content": "Has a cat."}}
        headers = {"Idempotency-Key": "k1"}

        for _ in range(2):
            answer = ok(
                await blocks.post("/tools/core_memory_append/call", json=body, headers=headers)
            )
            assert answer["tool"] == "core_memory_append"

        assert await self.value(blocks) == "Her name is Ana.\nHas a cat."

    async def test_the_labels_that_may_be_edited_are_offered(self, blocks) -> None:
        told = ok(await blocks.get("/tools", params={"session_id": "s1"}))

        assert set(told["names"]) == set(TOOLS)
        [one] = [tool for tool in told["tools"] if tool["function"]["name"] == "memory_insert"]
        assert one["function"]["parameters"]["properties"]["label"]["enum"] == ["human"]

    async def test_two_appends_at_once_both_stand(self, blocks) -> None:
        lines = ["Has a cat.", "Has a dog."]

        await asyncio.gather(
            *(result(blocks, "core_memory_append", {"label": "human", "content": line})
              for line in lines)
        )  # fmt: skip

        value = await self.value(blocks)
        assert all(line in value for line in lines)

    async def test_what_is_not_unique_is_counted_so_far_as_it_helps(self, blocks) -> None:
        ok(await blocks.patch(await self.path(blocks), json={"limit": 100, "value": "ha" * 30},
                              headers={"If-Match": "*"}))  # fmt: skip
        told = {"label": "human", "old_content": "ha", "new_content": "ho"}

        assert "stands in the block at least 20 times and must" in await refusal(
            blocks, "core_memory_replace", told
        )

    async def test_how_long_it_took_counts_what_it_waited_for(self, blocks, dsn) -> None:
        began = perf_counter()
        async with holding(dsn, "SELECT FROM blocks FOR UPDATE") as holder:
            calling = asyncio.create_task(
                called(blocks, "core_memory_append", {"label": "human", "content": "A cat."})
            )
            await until_somebody_waits(dsn, holder)
            waits = perf_counter()
            await asyncio.sleep(0.2)
            waited = perf_counter() - waits
        answer = await calling
        elapsed = perf_counter() - began

        assert answer["ok"]
        assert 1000 * waited <= answer["duration_ms"] + 1
        assert answer["duration_ms"] <= 1000 * elapsed

    async def path(self, client: AsyncClient) -> str:
        rows = ok(await client.get("/blocks", params={"agent_id": "helper", "label": "human"}))
        return f"/blocks/{rows['items'][0]['block_id']}"

    @pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k1"}])
    async def test_long_block_is_edited_and_rendered_once_in_a_thread(
        self, blocks, headers: dict[str, str]
    ) -> None:
        path = await self.path(blocks)
        ok(await blocks.patch(path, json={"limit": 100_000, "value": "word " * 19_000},
                              headers={"If-Match": "*"}))  # fmt: skip
        body = {"session_id": "s1", "arguments": {"label": "human", "content": "A cat."}}

        with watched_threads() as ran:
            answer = ok(
                await blocks.post("/tools/core_memory_append/call", json=body, headers=headers)
            )

        assert answer["ok"]
        assert (ran.count("edited"), ran.count("_block_result")) == (1, 1)

    @pytest.mark.parametrize(("verb", "body"), [("append", {"text": "A cat."})])
    async def test_long_block_is_edited_in_a_thread_for_a_program(
        self, blocks, verb: str, body: Any
    ) -> None:
        path = await self.path(blocks)
        ok(await blocks.patch(path, json={"limit": 100_000, "value": "word " * 19_000},
                              headers={"If-Match": "*"}))  # fmt: skip

        with watched_threads() as ran:
            ok(await blocks.post(f"{path}/{verb}", json=body))

        assert ran.count("edited") == 1


class TestOnce:
    """What one key was answered, where an edit changes nothing and where a block goes."""

    @pytest.fixture
    async def template(self, client: AsyncClient) -> AsyncClient:
        """The API, with a session s1 of an agent whose block is a template."""
        blocks = [{"label": "human", "value": "Name: unknown", "block_id": "b1"}]
        body = {"agent_id": "helper", "agent_name": "Helper", "memory_blocks": blocks}
        ok(await client.post("/agents", json=body), 201)
        await append(client, "s1", "Hello.", agent_id="helper")
        return client

    async def call(self, client: AsyncClient, tool: str, content: str, key: str) -> Any:
        body = {"session_id": "s1", "arguments": {"label": "human", "content": content}}
        headers = {"Idempotency-Key": key}
        return await client.post(f"/tools/{tool}/call", json=body, headers=headers)

    async def test_an_edit_that_changed_nothing_is_not_made_when_it_comes_again(
        self, template
    ) -> None:
        first = ok(await self.call(template, "memory_rethink", "Name: unknown", "k1"))
        ok(await self.call(template, "memory_rethink", "Name: Ana", "k2"))

        again = await self.call(template, "memory_rethink", "Name: unknown", "k1")

        assert again.headers["Idempotency-Replayed"] == "true"
        assert ok(again) == first
        [own] = ok(await template.get("/blocks", params={"template_id": "b1"}))["items"]
        assert own["value"] == "Name: Ana"

    async def test_what_was_told_of_a_block_goes_with_it(self, template, dsn, acme) -> None:
        ok(await self.call(template, "core_memory_append", "Wilhelmina", "k1"))
        ok(await self.call(template, "memory_rethink", "Wilhelmina sings.", "k2"))
        stats = {"session_id": "s1", "arguments": {"content": "She drinks green tea."}}
        ok(await template.post("/tools/memory_save/call", json=stats,
                               headers={"Idempotency-Key": "k3"}))  # fmt: skip
        assert "idempotency_keys" in tables_with("Wilhelmina", await dump(dsn, acme.tenant_id))

        ok(await template.delete("/blocks/b1", params={"confirm": True}))

        rows = await dump(dsn, acme.tenant_id)
        assert tables_with("Wilhelmina", rows) == []
        assert len(rows["idempotency_keys"]) == 1

    async def test_what_was_told_of_a_users_own_block_goes_with_that(
        self, template, dsn, acme
    ) -> None:
        told = ok(await self.call(template, "core_memory_append", "Wilhelmina", "k1"))

        ok(await template.delete(f"/blocks/{told['data']['block_id']}"))

        assert tables_with("Wilhelmina", await dump(dsn, acme.tenant_id)) == []

    @pytest.mark.parametrize("with_key", [False, True])
    async def test_result_is_rendered_once_and_after_the_transaction_without_a_key(
        self, with_key: bool
    ) -> None:
        """Rows are locked while a service keeps its answer."""
        kept: list[Any] = []

        class Key(IdempotencyKey):
            async def keep(self, db: Any, answer: Any, **_: Any) -> None:
                kept.append(answer)

        rendered: list[Any] = []

        async def render(answer: Any) -> ToolResult:
            rendered.append(answer)
            return ToolResult("Done.", {})

        caller = ToolCaller(
            key_principal=None, principal=None, session_id="s1", user_id="ana", agent_id="a1",
            project_id=None, remembers=True, budget=Budget(EstimatedTokens(), 100),
            keep=lambda result: result,
            key=Key("t", "k", "key", b"") if with_key else None,
        )  # fmt: skip
        answer = DeferredAnswer(caller, render)

        assert (answer.key is not None) == with_key
        if answer.key is not None:
            await answer.key.keep(None, "answer", status=201, user_id="ana")
        assert len(rendered) == int(with_key)
        assert await answer.result("answer") is await answer.result("answer")

        assert rendered == ["answer"]
        assert kept == ([await answer.result("answer")] if with_key else [])
