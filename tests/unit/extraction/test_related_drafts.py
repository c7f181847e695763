"""What was decided about all statements at once is carried out one after the other."""

from dataclasses import replace

import pytest

from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import ReconcileDecision, Remainder
from app.memory.extraction.drafts import Draft, EmbeddedText
from app.memory.extraction.related_drafts import as_it_is_now, with_stored_ids
from app.memory.memories.owner import MemoryOwner

HERS = MemoryOwner("user", "ana", "ana", None, None, None)


def decided(index: int, event: str, *memory_ids: str, content: str | None = None) -> Draft:
    proposed = Proposed(f"The user said {index}.", "fact", 0.9, ())
    draft = Draft(index, proposed, HERS, own=EmbeddedText(proposed.content))
    return draft.decided(ReconcileDecision(event, memory_ids, content))


def now(event: str, memory_ids: tuple[str, ...], *earlier: Draft) -> tuple[str, tuple[str, ...]]:
    wanted = ReconcileDecision(event, memory_ids, "Both.")
    found = as_it_is_now(wanted, {draft.index: draft for draft in earlier})
    return found.event, found.memory_ids


@pytest.mark.parametrize("event", ["SUPERSEDE", "UPDATE", "MERGE", "DELETE", "NONE"])
def test_what_nobody_changed_is_meant_as_it_was(event):
    earlier = decided(0, "SUPERSEDE", "mem_1"), decided(1, "ADD")

    assert now(event, ("mem_2", "draft:1"), *earlier) == (event, ("mem_2", "draft:1"))


@pytest.mark.parametrize("ended", ["SUPERSEDE", "DELETE"])
@pytest.mark.parametrize("event", ["SUPERSEDE", "UPDATE", "MERGE", "NONE"])
def test_what_an_earlier_one_ended_is_not_ended_or_repeated_again(event, ended):
    assert now(event, ("mem_1",), decided(0, ended, "mem_1")) == ("ADD", ())


def test_of_several_that_are_named_those_left_are_meant():
    earlier = decided(0, "SUPERSEDE", "mem_1")

    assert now("SUPERSEDE", ("mem_1", "mem_2"), earlier) == ("SUPERSEDE", ("mem_2",))


def test_retraction_of_what_has_ended_takes_back_nothing_more():
    assert now("DELETE", ("mem_1",), decided(0, "DELETE", "mem_1")) == ("DELETE", ())


@pytest.mark.parametrize("reworded", ["UPDATE", "MERGE"])
@pytest.mark.parametrize("event", ["SUPERSEDE", "DELETE", "NONE"])
def test_what_an_earlier_one_reworded_is_meant_by_its_former_id(event, reworded):
    earlier = decided(0, reworded, "mem_1", content="More.")

    assert now(event, ("mem_1",), earlier) == (event, ("draft:0",))


@pytest.mark.parametrize("event", ["UPDATE", "MERGE"])
def test_words_made_of_another_text_are_not_used(event):
    earlier = decided(0, "UPDATE", "mem_1", content="More.")

    assert now(event, ("mem_1",), earlier) == ("ADD", ())


def test_statement_that_repeats_a_memory_stands_for_it():
    earlier = decided(0, "NONE", "mem_1")

    assert now("SUPERSEDE", ("draft:0",), earlier) == ("SUPERSEDE", ("mem_1",))


def test_statement_that_repeats_one_that_is_reworded_later_stands_for_that():
    earlier = decided(0, "NONE", "mem_1"), decided(1, "UPDATE", "mem_1", content="More.")

    assert now("SUPERSEDE", ("draft:0",), *earlier) == ("SUPERSEDE", ("draft:1",))


def test_retraction_that_took_back_nothing_stands_for_nothing():
    assert now("SUPERSEDE", ("draft:0",), decided(0, "NONE")) == ("ADD", ())


class TestRemainders:
    """What of a memory still holds goes with the memory, under whatever id it is there now."""

    WANTED = ReconcileDecision(
        "SUPERSEDE",
        ("mem_1", "mem_2"),
        remainders=(Remainder("mem_1", "One."), Remainder("mem_2", "Two.", "老周.occupation")),
    )

    @pytest.mark.parametrize(
        ("earlier", "ids"),
        [
            (decided(0, "ADD"), ["mem_1", "mem_2"]),
            (decided(0, "SUPERSEDE", "mem_1"), ["mem_2"]),
            (decided(0, "UPDATE", "mem_1", content="More."), ["draft:0", "mem_2"]),
        ],
    )
    def test_goes_with_its_memory(self, earlier, ids):
        found = as_it_is_now(self.WANTED, {0: earlier})

        assert [rest.memory_id for rest in found.remainders] == ids

    def test_is_of_what_a_draft_of_the_run_was_stored_as(self):
        named = ("draft:0", "draft:1")
        rests = tuple(Remainder(each, f"{each}.") for each in named)
        wanted = ReconcileDecision("SUPERSEDE", named, remainders=rests)
        own = Proposed("The user said so.", "fact", 0.9, ())
        draft = Draft(2, own, HERS).decided(wanted)

        stored = with_stored_ids(draft, {"draft:0": "mem_7", "draft:1": None})

        assert [(rest.memory_id, rest.text.text) for rest in stored.remainders] == [
            ("mem_7", "draft:0.")
        ]

    def test_is_none_of_a_memory_that_does_not_end(self):
        draft = Draft(0, Proposed("The user said so.", "fact", 0.9, ()), HERS)

        left = draft.decided(replace(self.WANTED, memory_ids=("mem_2",))).remainders

        assert [rest.memory_id for rest in left] == ["mem_2"]
