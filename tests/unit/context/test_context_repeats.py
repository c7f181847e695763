"""What the profile says stands once in a context: which memories are left out, and which never."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from app.language.llm.tokens import EstimatedTokens
from app.memory.memories.candidate_search import Found
from app.memory.memories.hybrid import RankedMemory
from app.memory.profiles.prompt_lines import ProfileLine, RenderedProfile, project_lines, user_lines
from app.prompting.context.assembly import Remembered, remembered

COUNTER = EstimatedTokens()
NURSE = "The user works as a nurse."
NUTS = "She must not eat nuts."
BUDGET = 2000


def memory(number: int, content: str, **fields: Any) -> Found:
    row = {
        "memory_id": f"mem_{number}", "content": content, "memory_type": "fact", "scope": "user",
        "source_error": None, "speaker": None, "said_at": None, "confidence": 1.0,
        "valid_from": None, "valid_to": None, "version": 1,
        "conflicts_with": [], "newer_conflicts": [],
    } | fields  # fmt: skip
    ranked = RankedMemory(row["memory_id"], 1 - number / 100, 0.5, 0.5, 0.5, 1.0, 0.6)
    return Found(row, ranked)  # type: ignore[arg-type]  # a record reads the same


def shown(
    profile: Sequence[ProfileLine] | None,
    *found: Found,
    budget: int = BUDGET,
    memories: bool = True,
) -> Remembered:
    return remembered(profile, found, budget, COUNTER, corrections=True, memories=memories)


def section(value: Any, *numbers: int, slot: str = "sections.work_context") -> list[ProfileLine]:
    return user_lines({slot: RenderedProfile(value, [f"mem_{number}" for number in numbers])}, None)


def places(known: Remembered) -> dict[str, str]:
    return {found.ranked.memory_id: part for part, found, _ in known.shown}


class TestInWhole:
    @pytest.mark.parametrize(
        ("value", "content"),
        [
            (NURSE, NURSE),
            ("nurse", "nurse"),
            (f"{NURSE} She likes tea.", NURSE),
            (f"She likes tea. {NURSE}", NURSE),
            ("She likes tea. She has 3.5 bees! Nice.", "She has 3.5 bees!"),
            ("She likes tea.", "She likes tea"),
            ("She likes   tea. She bikes.", "She  likes\ntea"),
            ("她喜欢绿茶。她住在波恩。", "她住在波恩"),
            ("她喜欢绿茶。She bikes.", "She bikes."),
            ("One. Two. Three.", "Two. Three."),
            (["Never use tabs.", "Python 3.11"], "Python 3.11"),
            ("In ana's own words: 3 May 2025: I moved. I bike.", "I moved"),
            ("In ana's own words: 3 May 2025: I moved. I bike.", "I bike"),
            ("小李的原话：我在字节跳动工作。", "我在字节跳动工作"),
            (["ana: we ship on Fridays"], "we ship on Fridays"),
        ],
    )
    def test_what_it_says_as_a_sentence_is_said(self, value: Any, content: str) -> None:
        known = shown(section(value, 1), memory(1, content))

        assert places(known) == {"mem_1": "profile"}

    @pytest.mark.parametrize(
        ("value", "content"),
        [
            ("nurse", NURSE),
            (NURSE, "nurse"),
            ("She no longer likes tea.", "likes tea."),
            ("She likes tea without milk.", "She likes tea"),
            ("She has 3.5 bees.", "She has 3"),
            ("Does she like tea? Yes.", "Does she like tea"),
            ("She likes tea.", "she likes tea."),
            (["She likes tea, but only green"], "She likes tea"),
            (["She", "likes tea"], "She, likes tea"),
            ({"a": NURSE}, NURSE),
            (NURSE, ""),
        ],
    )
    def test_what_it_says_in_part_is_not(self, value: Any, content: str) -> None:
        known = shown(section(value, 1), memory(1, content))

        assert places(known) == {"mem_1": "memories"}

    def test_what_it_does_not_stand_on_is_not(self) -> None:
        """Equal words of another memory may be about somebody else."""
        known = shown(section(NURSE, 2), memory(1, NURSE))

        assert places(known) == {"mem_1": "memories"}

    def test_a_decision_without_a_reason_is_said(self) -> None:
        plain = {"decision": "We use PostgreSQL.", "reason": None, "time": "2026-01-02T00:00:00Z"}
        because = {"decision": "We use Redis", "reason": "it is fast", "time": None}
        lines = project_lines(
            {"key_decisions": RenderedProfile([plain, because], ["mem_1", "mem_2"])}
        )

        known = shown(
            lines,
            memory(1, "We use PostgreSQL.", memory_type="decision"),
            memory(2, "We use Redis because it is fast.", memory_type="decision"),
        )

        assert places(known) == {"mem_1": "profile", "mem_2": "memories"}


class TestNeverLeftOut:
    def test_a_constraint_that_the_profile_has_no_room_for(self) -> None:
        """Whatever the profile holds, only what is shown of it counts."""
        lines = section("Long words. " * 60, slot="attributes.background")
        lines += section(NUTS, 1, slot="slots.diet.allergies")

        known = shown(lines, memory(1, NUTS, memory_type="constraint"), budget=300)

        assert NUTS not in known.pieces[0].section.text
        assert places(known) == {"mem_1": "memories"}
        assert NUTS in known.pieces[2].section.text

    def test_one_that_is_shown_there_stands_once(self) -> None:
        lines = section(NUTS, 1, slot="slots.diet.allergies")

        known = shown(lines, memory(1, NUTS, memory_type="constraint"))

        texts = [piece.section.text for piece in known.pieces]
        assert "".join(texts).count(NUTS) == 1
        assert "- diet allergies: She must not eat nuts." in texts[0]

    def test_where_no_profile_is_wanted_nothing_is(self) -> None:
        assert places(shown(None, memory(1, NUTS))) == {"mem_1": "memories"}

    @pytest.mark.parametrize(
        ("fields", "part"),
        [
            ({"memory_type": "correction"}, "corrections"),
            ({"memory_type": "correction", "source_error": "surgeon"}, "corrections"),
            ({"source_error": "surgeon"}, "memories"),
            ({"valid_from": datetime(2026, 1, 2, tzinfo=UTC)}, "memories"),
            ({"valid_to": datetime(2026, 1, 2, tzinfo=UTC)}, "memories"),
            ({"conflicts_with": ["mem_2"]}, "memories"),
        ],
    )
    def test_a_line_that_tells_more_than_its_words(self, fields: dict, part: str) -> None:
        known = shown(section(NURSE, 1), memory(1, NURSE, **fields))

        assert places(known) == {"mem_1": part}

    def test_a_correction_that_its_share_has_no_room_for(self) -> None:
        said = [f"She was born in Porto, not in Lisbon, {number} times." for number in range(8)]
        lines = section(said[7], 7)
        found = [memory(n, one, memory_type="correction") for n, one in enumerate(said)]

        known = shown(lines, *found, budget=400)

        assert "profile" not in places(known).values()
        assert places(known)["mem_7"] == "memories"


class TestBudget:
    def test_what_is_not_said_twice_leaves_room_for_others(self) -> None:
        lines = section(NURSE, 0)
        others = [memory(n, f"She owns item number {n}.") for n in range(1, 40)]

        before = shown(section(NURSE), memory(0, NURSE), *others, budget=300)
        after = shown(lines, memory(0, NURSE), *others, budget=300)

        assert after.tokens <= 300
        assert len(after.shown) > len(before.shown)
        assert next(one for one in after.shown if one[0] == "profile")[2] == 0
        # Of what was found, only what had no room counts as left out.
        assert after.pieces[2].dropped == 40 - len(after.shown)

    def test_where_no_memories_are_wanted_none_is_told(self) -> None:
        known = shown(section(NURSE, 1), memory(1, NURSE), memories=False)

        assert places(known) == {}
