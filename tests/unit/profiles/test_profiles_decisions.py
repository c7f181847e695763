"""Decisions of a project, quoted from its memories."""

from datetime import UTC, datetime

import pytest

from app.language.llm.profiler import ProfileMemory
from app.memory.profiles.value_changes import decisions_of

TIME = datetime(2026, 5, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("content", "speaker", "decision", "reason"),
    [
        ("We use Rust because it is fast.", None, "We use Rust", "it is fast"),
        ("we use Rust because it is fast", "ana", "ana: we use Rust", "it is fast"),
        ("Because it is fast, we use Rust", "ana", "ana: Because it is fast, we use Rust", None),
        ("我们用Rust，因为快。", "小李", "小李: 我们用Rust", "快"),
        ("we use Rust", "ana", "ana: we use Rust", None),
    ],
)
def test_decision_names_whose_own_words_it_is(
    content: str, speaker: str | None, decision: str, reason: str | None
) -> None:
    known = ProfileMemory("mem_1", content, "decision", None, 0.9, TIME, speaker, TIME)

    assert decisions_of([known]) == (
        [{"decision": decision, "reason": reason, "time": TIME.isoformat()}], ["mem_1"],
    )  # fmt: skip
