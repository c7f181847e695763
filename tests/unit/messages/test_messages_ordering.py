"""When an append orders a compaction: at the threshold, and not with every message after it."""

from dataclasses import replace
from typing import Any

import pytest
from httpx import AsyncClient

from app.conversation.messages.pressure import Pressure, is_to_order
from tests.support.api import append

FULL = Pressure("flush", 1_050, 1_000, 1.05, due=True)
"""Just above its budget of 1,000 tokens."""


class TestRule:
    def test_what_becomes_due_is_ordered(self) -> None:
        before = replace(FULL, tokens=1_049, due=False)

        assert is_to_order(before, FULL, asked=False)

    @pytest.mark.parametrize("asked", [True, False])
    def test_what_is_not_due_is_never(self, asked: bool) -> None:
        assert not is_to_order(FULL, replace(FULL, tokens=2_000, due=False), asked=asked)

    @pytest.mark.parametrize(
        ("tokens", "ordered"), [(1_051, False), (1_099, False), (1_100, True), (1_101, True)]
    )
    def test_what_is_due_still_when_it_has_grown_by_a_further_step(
        self, tokens: int, ordered: bool
    ) -> None:
        assert is_to_order(FULL, replace(FULL, tokens=tokens), asked=False) is ordered

    @pytest.mark.parametrize(("asked", "ordered"), [(True, True), (False, False)])
    def test_or_when_the_user_has_said_more(self, asked: bool, ordered: bool) -> None:
        """The request before is not the current one any more, and may leave."""
        assert is_to_order(FULL, replace(FULL, tokens=1_051), asked=asked) is ordered


async def ordered(client: AsyncClient, *messages: Any) -> bool:
    told = await append(client, "s", *messages)
    assert told["pressure"]["level"] == "flush"
    return told["pressure"]["compaction_job_id"] is not None
