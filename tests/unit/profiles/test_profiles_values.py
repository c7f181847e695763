"""What a derivation changes: values that stay, words that stay, and nothing said twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.language.llm.profiler import CurrentValue
from app.memory.profiles.slots import USER_SLOTS
from app.memory.profiles.value_changes import (
    Evidence,
    ValueChange,
    lasting,
    with_old_evidence,
    without_repetitions,
)

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SECTION = "sections.work_context"
OTHER = "sections.top_of_mind"


def kept(*changes: ValueChange, current: tuple[CurrentValue, ...] = ()) -> list[object]:
    return [change.value for change in without_repetitions(changes, USER_SLOTS, current)]


@pytest.mark.parametrize(
    ("ends", "asked", "stays"),
    [
        (None, None, True),
        (NOW + SECOND, None, True),
        (NOW, None, False),
        (NOW - SECOND, NOW - 2 * SECOND, False),
        (NOW - SECOND, NOW - SECOND, True),
        (NOW - SECOND, NOW, True),
    ],
)
def test_value_stays_for_what_had_ended_when_a_model_was_asked(
    ends: datetime | None, asked: datetime | None, stays: bool
) -> None:
    assert ("m" in lasting({"m": Evidence(1, ends)}, NOW, asked)) == stays


def test_sentence_stands_in_the_first_section_that_says_it() -> None:
    changes = [
        ValueChange(OTHER, "Learns Danish. Works at SAP!", ["a"]),
        ValueChange(SECTION, "Works at SAP. Leads two.", ["b"]),
    ]

    assert kept(*changes) == ["Learns Danish.", "Works at SAP. Leads two."]


def test_chinese_sentence_stands_once() -> None:
    changes = [
        ValueChange(SECTION, "在SAP工作。带两人。"),
        ValueChange(OTHER, "带两人！学丹麦语。"),
    ]

    assert kept(*changes) == ["在SAP工作。带两人。", "学丹麦语。"]


def test_value_that_stays_says_it_first() -> None:
    current = (CurrentValue(OTHER, "Works at SAP."), CurrentValue(SECTION, "Old."))

    assert kept(ValueChange(SECTION, "Works at SAP. Old."), current=current) == ["Old."]
    assert kept(ValueChange(SECTION, "Works at SAP."), current=current) == [None]


@pytest.mark.parametrize("slot", ["attributes.profession", "slots.work.job"])
def test_single_value_is_never_taken(slot: str) -> None:
    current = (CurrentValue(SECTION, "Nurse."),)
    slots = [*USER_SLOTS, replace(USER_SLOTS[0], name="slots.work.job")]
    [change] = without_repetitions([ValueChange(slot, "nurse")], slots, current)

    assert change.value == "nurse"


def test_choice_is_no_word_of_the_profile() -> None:
    changes = [
        ValueChange("attributes.communication_style", "technical"),
        ValueChange("attributes.expertise_areas", ["technical"]),
    ]

    assert kept(*changes) == ["technical", ["technical"]]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Works at SAP. Leads two.", ["new", "old"]),
        ("Leads two.", ["new"]),
        ("works at SAP", ["new", "old"]),
    ],
)
def test_kept_words_keep_their_memories(text: str, ids: list[str]) -> None:
    current = [CurrentValue(SECTION, "Works at SAP. Sings.", ["old", "gone"])]

    [change] = with_old_evidence([ValueChange(SECTION, text, ["new"])], current, {"old", "new"})

    assert change.memory_ids == ids
