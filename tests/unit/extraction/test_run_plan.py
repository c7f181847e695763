"""What was decided is used again only where nothing of what it names has changed."""

import pytest

from app.language.llm.reconciler import ReconcileDecision
from app.memory.extraction.maintenance import MaintenancePlan
from app.memory.extraction.reconciliation import RunPlan
from app.memory.extraction.snapshot_repository import DraftNeighbours


def neighbours(*near: tuple[str, int]) -> DraftNeighbours:
    return DraftNeighbours((), frozenset(near), None)


@pytest.mark.parametrize(
    ("now", "kept"),
    [
        ({0: neighbours(("mem_1", 1)), 1: neighbours(("mem_2", 1))}, {0, 1}),
        ({0: neighbours(("mem_1", 1)), 1: neighbours(("mem_2", 2))}, set()),
        ({0: neighbours(("mem_1", 1)), 1: neighbours()}, set()),
        ({0: neighbours(("mem_1", 1)), 1: neighbours(("mem_2", 1), ("mem_3", 1))}, {0}),
        ({0: neighbours(("mem_1", 2)), 1: neighbours(("mem_2", 1))}, {1}),
    ],
)
def test_a_decision_about_a_changed_neighbour_of_another_draft_is_not_used(now, kept):
    before = {0: neighbours(("mem_1", 1)), 1: neighbours(("mem_2", 1))}
    decision = ReconcileDecision("UPDATE", ("mem_2",), "All of it.")
    plan = RunPlan(before, (), MaintenancePlan(10), {0: decision, 1: decision})

    assert set(plan.answers_for(now)) == kept
