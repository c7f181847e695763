"""Notices and events are messages of role system with `metadata.event_type`."""

from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, every_page, ok
from tests.support.working import extracted, working

TIMER = {
    "role": "system",
    "content": "The user has moved to Hamburg and loves sailing boats.",
    "metadata": {"event_type": "timer", "due": "2026-11-22T08:00:00Z"},
}


class TestEvents:
    async def test_one_is_stored_in_order_with_its_kind(self, client: AsyncClient) -> None:
        await append(client, "s1", "Good morning.", TIMER, "And good night.")

        rows = await every_page(client, "/sessions/s1/messages")

        assert [row["role"] for row in rows] == ["user", "system", "user"]
        assert rows[1]["metadata"] == TIMER["metadata"]
        assert rows[1]["content"] == TIMER["content"]

    async def test_block_event_is_in_the_window(self, client: AsyncClient) -> None:
        await append(client, "s1", "Good morning.")
        before = ok(await client.get("/sessions/s1/window"))

        await append(client, "s1", TIMER)

        after = ok(await client.get("/sessions/s1/window"))
        assert after["messages"] == before["messages"] + 1
        assert after["pressure"]["tokens"] > before["pressure"]["tokens"]

    async def test_block_event_alone_orders_no_extraction(self, client: AsyncClient) -> None:
        answer = await append(client, "s1", TIMER)

        assert answer["extraction"]["scheduled"] is False

    async def test_content_of_a_block_is_never_remembered(
        self, client: AsyncClient, runtime: Runtime, dsn: str
    ) -> None:
        await append(client, "s1", "I live in Munich.", TIMER, "I drink green tea.")

        async with working(runtime, dsn):
            await extracted(client, "s1")

        contents = [row["content"] for row in await every_page(client, "/memories")]
        assert any("Munich" in content for content in contents)
        assert not [one for one in contents if "Hamburg" in one or "sailing" in one]
