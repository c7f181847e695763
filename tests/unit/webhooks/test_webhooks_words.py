"""What is written with a change, for whom, and that nothing is without it."""

from typing import Any

import pytest

from app.platform.outbox.models import Event

ADDED = Event("memory.added", {"memory_id": "mem_1", "user_id": "ana"}, "ana")


class TestWords:
    @pytest.mark.parametrize(
        "data",
        [
            {"content": "She moved to Munich."},
            {"content": "她搬到了慕尼黑"},
            {"content": ""},
            {"content": "x" * 256},
            {"list": ["mem_1", "two words"]},
            {"inner": {"deep": ["ümlaut"]}},
            {"inner": {"two words": 1}},
            {"line": "mem_1\n"},
        ],
    )
    def test_an_event_takes_no_sentence(self, data: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="ids, codes and numbers") as raised:
            Event("memory.added", data)

        assert str(data) not in str(raised.value)

    @pytest.mark.parametrize("user_id", [None, "ben"])
    def test_an_event_that_names_a_person_is_about_that_person(self, user_id: str | None) -> None:
        with pytest.raises(ValueError, match="hides it from erasures"):
            Event("memory.added", {"user_id": "ana"}, user_id)

    def test_ids_codes_numbers_and_moments_pass(self) -> None:
        Event(
            "memory.added",
            {
                "author_id": "Ana.M|+=~:@example.com",
                "key": "x" * 255,
                "at": "2026-11-21T12:00:00.000001+00:00",
                "model": "openai/text-embedding-3-small",
                "version": 3,
                "confidence": 0.5,
                "hard": True,
                "session_id": None,
                "evidence": ["msg_1", "msg_2"],
            },
        )
