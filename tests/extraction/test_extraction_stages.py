"""What stages hand to each other cannot be changed, so a round that is undone leaves nothing."""

import pkgutil
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from importlib import import_module
from inspect import getmembers, isclass

import pytest

import app.memory.extraction
from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import Neighbour, ReconcileDecision
from app.memory.extraction.decisions import DecisionLimits, decide
from app.memory.extraction.drafts import Draft, EmbeddedText, barred, by_owner
from app.memory.extraction.related_drafts import RelatedDrafts
from app.memory.memories.owner import MemoryOwner

HER = MemoryOwner("user", "ana", "ana", None, None, None)
PROJECT = MemoryOwner("project", "apollo", "ana", None, None, "apollo")


def values() -> list[type]:
    package = app.memory.extraction
    modules = [
        import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    return [
        kind
        for module in modules
        for _, kind in getmembers(module, isclass)
        if kind.__module__ == module.__name__ and is_dataclass(kind)
    ]


@pytest.mark.parametrize("kind", values(), ids=lambda kind: kind.__name__)
def test_values_between_stages_are_frozen_and_hold_nothing_to_be_changed(kind):
    assert kind.__dataclass_params__.frozen
    annotations = [str(field.type) for field in fields(kind)]
    assert not [one for one in annotations if one.startswith(("dict", "list", "set"))]


def draft(index: int = 0, owner: MemoryOwner = HER, vector: list[float] | None = None) -> Draft:
    content = f"The user said {index}."
    own = EmbeddedText(content, vector=vector or [1.0, 0.0])
    return Draft(index, Proposed(content, "fact", 0.9, ("m1",)), owner, own=own)


def test_deciding_leaves_the_open_draft_as_it_was():
    near = Neighbour("mem_1", "The user said so.", "fact", 0.9, 0.8)
    before = replace(draft(), neighbours=(near,))

    [after], _ = decide([before], [ReconcileDecision("SUPERSEDE", ("mem_1",))], DecisionLimits())

    assert (before.open, before.target_ids) == (True, ())
    assert (after.event, after.target_ids) == ("SUPERSEDE", ("mem_1",))
    with pytest.raises(FrozenInstanceError):
        after.event = "ADD"


def test_project_that_is_barred_refuses_its_open_drafts_alone():
    known = draft(2, PROJECT).repeating("mem_1", "known")

    hers, theirs, repeated = barred([draft(0), draft(1, PROJECT), known], ("user", "session"))

    assert (hers.event, repeated.event) == (None, "NONE")
    assert [reason.code for reason in theirs.reasons] == ["scope_not_allowed"]


def test_buckets_come_in_one_order_for_all_runs():
    drafts = [draft(3), draft(1, PROJECT), draft(2)]

    assert [
        (owner.scope, [one.index for one in own]) for owner, own in by_owner(drafts).items()
    ] == [("project", [1]), ("user", [2, 3])]


def test_later_statement_has_what_became_of_the_earlier_one_it_concerns():
    first, apart, second = draft(0), draft(1, vector=[0.0, 1.0]), draft(2)
    related = RelatedDrafts([first, apart, second], floor=0.5)
    added = first.decided(ReconcileDecision("ADD"))

    [near] = related.decided(second, (), {0: added, 1: apart.decided(ReconcileDecision("ADD"))})
    assert (near.memory_id, near.similarity) == (first.pending_id, 1.0)
    assert [near.memory_id for near in related.undecided(second, ())] == [first.pending_id]
