"""What a reconciler wishes is held to what is allowed, in code, whatever it says."""

from datetime import UTC, datetime, timedelta

import pytest

from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import Neighbour, ReconcileDecision
from app.memory.extraction.decisions import (
    MOST_REMOVALS,
    SAID_LATER,
    DecisionLimits,
    decide,
    ended_by_later,
)
from app.memory.extraction.drafts import Draft, EmbeddedText
from app.memory.extraction.related_drafts import with_stored_ids
from app.memory.memories.owner import MemoryOwner

PLACE = MemoryOwner("user", "ana", "ana", None, None, None)
NOW = datetime(2026, 3, 14, tzinfo=UTC)


def neighbour(memory_id: str, **rest: object) -> Neighbour:
    values = {
        "content": f"The user said {memory_id}.",
        "memory_type": "fact",
        "confidence": 0.9,
        "similarity": 0.8,
    }
    return Neighbour(memory_id, **(values | rest))


def draft(*neighbours: Neighbour, index: int = 0, **proposed: object) -> Draft:
    values = {"memory_type": "fact", "confidence": 0.9, "evidence": ("m1",)} | proposed
    content = "The user lives in Munich."
    return Draft(
        index,
        Proposed(content, **values),
        PLACE,
        own=EmbeddedText(content),
        neighbours=neighbours,
    )


def settled(one: Draft, decision: ReconcileDecision) -> Draft:
    [decided], _ = decide([one], [decision], DecisionLimits())
    return decided


def test_a_wish_that_fits_is_granted():
    one = settled(
        draft(neighbour("mem_1")), ReconcileDecision("SUPERSEDE", ("mem_1",), reason="moved")
    )

    assert (one.event, one.target_ids, one.reason) == ("SUPERSEDE", ("mem_1",), "moved")


class TestSaidLater:
    LATER = NOW + timedelta(seconds=1)

    def test_statement_ends_what_was_said_before_it_or_with_it(self):
        for said_at in (NOW, NOW - timedelta(days=1), None):
            one = draft(neighbour("mem_1", said_at=said_at), said_at=NOW)

            assert settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",))).event == "SUPERSEDE"

    def test_what_was_said_later_stays_in_conflict(self):
        one = draft(neighbour("mem_1", said_at=self.LATER), said_at=NOW)

        decided = settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",)))

        assert (decided.event, decided.conflicts) == ("ADD", ("mem_1",))
        assert decided.reason == SAID_LATER

    @pytest.mark.parametrize(
        ("valid_to", "conflicts"),
        [
            (NOW - timedelta(days=2000), ()),
            (NOW, ()),
            (LATER, ("mem_1",)),
            (None, ("mem_1",)),
        ],
    )
    def test_what_was_over_when_it_was_said_contradicts_nothing(self, valid_to, conflicts):
        one = draft(neighbour("mem_1", said_at=self.LATER), said_at=NOW, valid_to=valid_to)

        for decision in (
            ReconcileDecision("SUPERSEDE", ("mem_1",)),
            ReconcileDecision("ADD", conflicts=("mem_1",)),
        ):
            decided = settled(one, decision)
            assert (decided.event, decided.conflicts) == ("ADD", conflicts)

    @pytest.mark.parametrize(
        ("times", "event"),
        [
            ({"create_time": LATER}, "ADD"),
            ({"create_time": NOW}, "SUPERSEDE"),
            ({"valid_from": LATER, "create_time": NOW}, "ADD"),
            ({"valid_from": NOW, "create_time": LATER}, "SUPERSEDE"),
            ({"said_at": NOW, "valid_from": LATER, "create_time": LATER}, "SUPERSEDE"),
        ],
    )
    def test_what_has_no_time_of_its_own_goes_by_its_begin_or_its_storing(self, times, event):
        one = draft(neighbour("mem_1", **times), said_at=NOW)

        assert settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",))).event == event

    def test_nothing_takes_back_what_is_said_later(self):
        one = draft(neighbour("mem_1", said_at=self.LATER), said_at=NOW, retracts=True)

        decided = settled(one, ReconcileDecision("DELETE", ("mem_1",)))

        assert (decided.event, decided.conflicts) == ("NONE", ())

    def test_later_value_of_the_attribute_does_not_end_with_the_others(self):
        others = [
            neighbour("mem_1", attribute="user.residence", said_at=NOW),
            neighbour("mem_2", **ROME, said_at=self.LATER),
        ]
        one = draft(*others, attribute="user.residence", said_at=NOW)

        assert settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",))).target_ids == ("mem_1",)

    def test_later_one_may_be_said_more_precisely(self):
        one = draft(neighbour("mem_1", said_at=self.LATER), said_at=NOW)

        assert settled(one, ReconcileDecision("UPDATE", ("mem_1",), "More.")).event == "UPDATE"


def test_a_memory_that_was_not_shown_cannot_be_named():
    one = settled(draft(neighbour("mem_1")), ReconcileDecision("SUPERSEDE", ("mem_2",)))

    assert (one.event, one.target_ids) == ("ADD", ())
    assert "not shown" in one.reason


def test_one_unknown_among_known_ones_spoils_a_merge():
    one = settled(
        draft(neighbour("mem_1")), ReconcileDecision("MERGE", ("mem_1", "mem_2"), "Both.")
    )

    assert one.event == "ADD"


@pytest.mark.parametrize(
    ("event", "ids"),
    [
        *((event, ()) for event in ("SUPERSEDE", "UPDATE", "DELETE", "MERGE")),
        ("UPDATE", ("mem_1", "mem_2")),
    ],
)
def test_an_event_needs_exactly_as_many_memories_as_it_has_places(event, ids):
    one = draft(neighbour("mem_1"), neighbour("mem_2"))

    assert settled(one, ReconcileDecision(event, ids, content="Text.")).event == "ADD"


@pytest.mark.parametrize("content", [None, "", "  \n"])
@pytest.mark.parametrize("event", ["UPDATE", "MERGE"])
def test_new_words_must_be_words(event, content):
    assert (
        settled(draft(neighbour("mem_1")), ReconcileDecision(event, ("mem_1",), content)).event
        == "ADD"
    )


@pytest.mark.parametrize("event", ["SUPERSEDE", "UPDATE", "DELETE", "MERGE"])
def test_what_a_person_saved_is_not_changed(event):
    saved = neighbour("mem_1", protected=True, saved_by_person=True)
    one = settled(draft(saved), ReconcileDecision(event, ("mem_1",), content="Text."))

    assert one.event == "ADD"
    assert "protected" in one.reason


def test_what_a_person_saved_may_be_repeated():
    saved = neighbour("mem_1", protected=True, saved_by_person=True)
    one = settled(draft(saved), ReconcileDecision("NONE", ("mem_1",)))

    assert (one.event, one.memory_id) == ("NONE", "mem_1")


@pytest.mark.parametrize("event", ["UPDATE", "MERGE"])
def test_a_correction_is_reworded_by_a_correction_alone(event):
    earlier = neighbour("mem_1", memory_type="correction", protected=True)
    wanted = ReconcileDecision(event, ("mem_1",), "Text.")

    assert settled(draft(earlier), wanted).event == "ADD"
    assert settled(draft(earlier, memory_type="correction"), wanted).event == event


def test_a_correction_ends_when_what_it_says_is_over():
    earlier = neighbour("mem_1", memory_type="correction", protected=True)

    wanted = ReconcileDecision("SUPERSEDE", ("mem_1",))
    assert settled(draft(earlier), wanted).event == "SUPERSEDE"
    taken_back = settled(draft(earlier, retracts=True), ReconcileDecision("DELETE", ("mem_1",)))
    assert taken_back.event == "DELETE"


def test_a_correction_does_not_end_with_other_values_of_its_attribute():
    first = neighbour("mem_1", attribute="user.residence")
    corrected = neighbour("mem_2", **ROME, memory_type="correction", protected=True)
    one = draft(first, corrected, attribute="user.residence")

    assert settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",))).target_ids == ("mem_1",)


def test_a_correction_somebody_saved_by_hand_is_not_mended():
    by_hand = neighbour("mem_1", memory_type="correction", protected=True, saved_by_person=True)
    one = draft(by_hand, memory_type="correction")

    assert settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",))).event == "ADD"


def test_a_memory_is_changed_once_in_a_run():
    near = neighbour("mem_1")
    drafts = [draft(near), draft(near, index=1)]
    decisions = [ReconcileDecision("SUPERSEDE", ("mem_1",))] * 2
    (first, second), _ = decide(drafts, decisions, DecisionLimits())

    assert [first.event, second.event] == ["SUPERSEDE", "ADD"]


@pytest.mark.parametrize("wanted", [MOST_REMOVALS - 1, MOST_REMOVALS, MOST_REMOVALS + 1])
def test_a_run_ends_at_most_ten_memories(wanted):
    drafts = [draft(neighbour(f"mem_{n}"), index=n) for n in range(wanted)]
    decisions = [ReconcileDecision("SUPERSEDE", (f"mem_{n}",)) for n in range(wanted)]
    decided, limits = decide(drafts, decisions, DecisionLimits())

    events = [one.event for one in decided]
    assert limits.left == max(MOST_REMOVALS - wanted, 0)
    assert events.count("SUPERSEDE") == min(wanted, MOST_REMOVALS)
    assert events.count("ADD") == max(wanted - MOST_REMOVALS, 0)


@pytest.mark.parametrize(("statements", "most"), [(1, 10), (3, 10), (4, 12), (10, 30)])
def test_a_run_of_many_statements_ends_more(statements, most):
    assert DecisionLimits.of_run(statements).left == most


def test_updates_are_no_removals():
    drafts = [draft(neighbour(f"mem_{n}"), index=n) for n in range(MOST_REMOVALS + 5)]
    decisions = [ReconcileDecision("UPDATE", (f"mem_{n}",), "More.") for n in range(len(drafts))]
    decided, limits = decide(drafts, decisions, DecisionLimits())

    assert {one.event for one in decided} == {"UPDATE"}
    assert limits.left == MOST_REMOVALS


class TestRetractions:
    def test_one_that_is_to_be_added_ends_nothing_and_adds_nothing(self):
        one = draft(neighbour("mem_1"), retracts=True)

        assert settled(one, ReconcileDecision("ADD")).event == "NONE"

    def test_one_without_a_neighbour_changes_nothing(self):
        assert settled(draft(retracts=True), ReconcileDecision("DELETE", ())).event == "NONE"

    def test_one_that_supersedes_only_ends(self):
        one = draft(neighbour("mem_1"), retracts=True)

        assert settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",))).event == "DELETE"

    def test_one_that_may_not_end_its_neighbour_changes_nothing(self):
        saved = neighbour("mem_1", protected=True, saved_by_person=True)

        assert (
            settled(draft(saved, retracts=True), ReconcileDecision("DELETE", ("mem_1",))).event
            == "NONE"
        )


ROME = {"content": "The user lives in Rome.", "attribute": "user.residence"}


def test_a_new_value_ends_every_other_value_of_its_attribute():
    first = neighbour("mem_1", attribute="user.residence")
    restored = neighbour("mem_2", **ROME, similarity=0.5)
    by_hand = neighbour("mem_3", **ROME, protected=True, saved_by_person=True)
    other = neighbour("mem_4", **ROME | {"attribute": "user.employer"})
    one = draft(first, restored, by_hand, other, attribute="user.residence")

    assert settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",))).target_ids == ("mem_1", "mem_2")


@pytest.mark.parametrize(
    "same",
    [
        "The user lives in Munich with Joe.",
        "The user lives in Munich-Schwabing.",
        "The user is at home where the beer is.",
    ],
)
def test_what_gives_the_same_value_or_none_that_can_be_read_stays(same):
    first = neighbour("mem_1", **ROME)
    kept = neighbour("mem_2", content=same, attribute="user.residence")
    one = draft(first, kept, attribute="user.residence")

    assert settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",))).target_ids == ("mem_1",)


@pytest.mark.parametrize(("speaker", "ended"), [("Ana", 2), (None, 2), ("Ben", 1)])
def test_a_value_of_another_speaker_stays(speaker, ended):
    first, other = neighbour("mem_1"), neighbour("mem_2", **ROME, speaker=speaker)
    one = draft(first, other, attribute="user.residence", speaker="Ana")

    assert len(settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",))).target_ids) == ended


class TestEndedByLater:
    LATER = NOW + timedelta(days=400)

    def added(self, *neighbours: Neighbour, **proposed: object) -> Draft:
        values = {"attribute": "user.residence", "said_at": NOW} | proposed
        return ended_by_later(settled(draft(*neighbours, **values), ReconcileDecision("ADD")))

    def test_older_value_held_until_the_later_one_began(self):
        one = self.added(neighbour("mem_1", **ROME, said_at=self.LATER))

        assert (one.event, one.proposed.valid_to, one.conflicts) == ("ADD", self.LATER, ())
        began = self.LATER - timedelta(days=30)
        moved = neighbour("mem_1", **ROME, said_at=self.LATER, valid_from=began)
        assert self.added(moved).proposed.valid_to == began

    def test_of_several_later_ones_the_first_ended_it(self):
        last = neighbour("mem_2", **ROME, said_at=self.LATER + timedelta(days=1))

        one = self.added(last, neighbour("mem_1", **ROME, said_at=self.LATER))
        assert one.proposed.valid_to == self.LATER

    @pytest.mark.parametrize(
        ("memory", "proposed"),
        [
            ({"said_at": NOW - timedelta(days=1)}, {}),
            ({"said_at": NOW}, {}),
            ({"said_at": LATER, "attribute": "user.employer"}, {}),
            ({"said_at": LATER}, {"attribute": None}),
            ({"said_at": LATER}, {"valid_from": LATER}),
            ({"said_at": LATER, "speaker": "Ben"}, {"speaker": "Ana"}),
        ],
    )
    def test_nothing_else_ends_it(self, memory, proposed):
        assert self.added(neighbour("mem_1", **ROME | memory), **proposed).proposed.valid_to is None


class TestConflicts:
    def test_what_was_shown_stays_linked(self):
        one = draft(neighbour("mem_1"), neighbour("mem_2"))
        wanted = ReconcileDecision("ADD", conflicts=("mem_2", "mem_9", "mem_2"))

        assert settled(one, wanted).conflicts == ("mem_2",)

    def test_what_this_run_has_ended_is_no_conflict(self):
        near = neighbour("mem_1")
        decisions = [
            ReconcileDecision("SUPERSEDE", ("mem_1",)),
            ReconcileDecision("ADD", conflicts=("mem_1",)),
        ]
        (_, second), _ = decide([draft(near), draft(near, index=1)], decisions, DecisionLimits())

        assert (second.event, second.conflicts) == ("ADD", ())

    def test_what_a_person_saved_may_be_in_conflict(self):
        saved = neighbour("mem_1", protected=True, saved_by_person=True)

        assert settled(draft(saved), ReconcileDecision("ADD", conflicts=("mem_1",))).conflicts

    @pytest.mark.parametrize(
        ("event", "linked"),
        [("SUPERSEDE", ("mem_1", "mem_2")), ("DELETE", ("mem_1", "mem_2")), ("UPDATE", ())],
    )
    def test_what_it_was_to_replace_and_a_person_saved_is_in_conflict(self, event, linked):
        saved = neighbour("mem_1", protected=True, saved_by_person=True)
        one = draft(saved, neighbour("mem_2"))
        decided = settled(one, ReconcileDecision(event, ("mem_1",), "Text.", conflicts=("mem_2",)))

        assert (decided.event, decided.conflicts) == ("ADD", linked)

    def test_what_a_run_may_no_longer_end_is_in_conflict(self):
        one = draft(neighbour("mem_1"))
        wanted = ReconcileDecision("SUPERSEDE", ("mem_1",))

        [last], _ = decide([one], [wanted], DecisionLimits(left=1))
        [beyond], _ = decide([one], [wanted], DecisionLimits(left=0))

        assert (last.event, last.conflicts) == ("SUPERSEDE", ())
        assert (beyond.event, beyond.conflicts) == ("ADD", ("mem_1",))

    def test_another_value_that_is_in_conflict_is_not_replaced(self):
        old, kept = (neighbour(each, **ROME) for each in ("mem_1", "mem_2"))
        one = draft(old, kept, attribute="user.residence")
        decided = settled(one, ReconcileDecision("SUPERSEDE", ("mem_1",), conflicts=("mem_2",)))

        assert (decided.target_ids, decided.conflicts) == (("mem_1",), ("mem_2",))

    @pytest.mark.parametrize("event", ["UPDATE", "MERGE", "DELETE", "NONE"])
    def test_other_events_have_none(self, event):
        one = draft(neighbour("mem_1"), neighbour("mem_2"))
        wanted = ReconcileDecision(event, ("mem_1",), "Text.", conflicts=("mem_2",))

        assert settled(one, wanted).conflicts == ()

    def test_drafts_of_the_run_get_their_stored_ids(self):
        one = draft(neighbour("draft:0"), neighbour("draft:1"), index=2)
        wanted = ReconcileDecision("ADD", conflicts=("draft:0", "draft:1"))
        stored = with_stored_ids(settled(one, wanted), {"draft:0": "mem_7", "draft:1": None})

        assert stored.conflicts == ("mem_7",)
