"""When an append orders a compaction: at the threshold, and not with every message after it."""

from typing import Any

from httpx import AsyncClient

from tests.support.api import append, execute
from tests.support.conversations import policy, window
from tests.support.tenants import Caller

SHORT = {"role": "assistant", "content": "On."}


async def done(dsn: str, acme: Caller) -> None:
    """Let the job be over without a change, as where a summary would not be shorter."""
    await execute(
        dsn,
        "UPDATE jobs SET status = 'succeeded' WHERE tenant_id = $1 AND kind = 'compact'",
        acme.tenant_id,
    )


async def ordered(client: AsyncClient, *messages: Any) -> bool:
    told = await append(client, "s", *messages)
    assert told["pressure"]["level"] == "flush"
    return told["pressure"]["compaction_job_id"] is not None


async def test_a_window_that_could_not_be_shortened_is_left_alone_for_a_while(
    client: AsyncClient, dsn: str, acme: Caller
) -> None:
    await policy(client, "s", budget_tokens=1_000)
    long = {"role": "assistant", "content": "The blue notebook lies on the shelf. " * 115}
    some = {"role": "assistant", "content": "The blue notebook lies on the shelf. " * 12}
    assert await ordered(client, "Hello", SHORT, "Look", long)
    there = (await window(client, "s"))["tokens"]
    await done(dsn, acme)

    steps = [await ordered(client, SHORT) for _ in range(3)]
    assert there // 100 == (await window(client, "s"))["tokens"] // 100
    assert steps == [False, False, False]

    assert await ordered(client, some)
    await done(dsn, acme)
    assert not await ordered(client, SHORT)
    assert await ordered(client, "And now?")
