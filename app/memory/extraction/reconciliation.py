"""Reconcile: what becomes of every draft and of the agenda, decided among a snapshot. Writes
nothing but what model calls cost.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    ReconcileDecision,
    ReconcileQuestion,
    Reconciler,
    Reconciliation,
)
from app.language.text.normal_forms import content_hash
from app.memory.extraction.decisions import ConflictGroups, DecisionLimits, decide
from app.memory.extraction.drafts import Draft, EmbeddedText, embedded
from app.memory.extraction.maintenance import MaintenancePlan, plan_maintenance
from app.memory.extraction.model_calls import ModelCalls
from app.memory.extraction.run_state import RunState
from app.memory.extraction.snapshot_repository import Neighbours, RunSnapshot
from app.memory.memories.gate import Gate, Proposal

Ask = Callable[[Sequence[ReconcileQuestion], Agenda], Awaitable[Reconciliation]]
"""Gives one decision per question, and looks at old memories besides."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run will store.

    Args:
        neighbours: what was decided among.
        drafts: every open one of the run, decided, in the order in which they may be stored.

    """

    neighbours: Neighbours
    drafts: tuple[Draft, ...]
    maintenance: MaintenancePlan

    def is_outdated(self, now: Neighbours) -> bool:
        """Whether neighbours came, went or changed since."""
        return any(
            now[index].versions != before.versions for index, before in self.neighbours.items()
        )


class DraftReconciliation:
    """Decides by the run's model, or by rules where there is no time to ask one."""

    def __init__(self, calls: ModelCalls, gate: Gate, rules: Reconciler) -> None:
        self._calls = calls
        self._gate = gate
        self._rules = rules

    async def plan(self, state: RunState, snapshot: RunSnapshot) -> RunPlan:
        """Give every open draft its event, by the reconciler where there is something to compare.

        The first time it is asked it is shown the agenda, too. New words are judged and embedded.

        Raises:
            ModelUnavailableError, EmbeddingUnavailableError: nothing was decided; try again.

        """
        shown = snapshot.agenda
        drafts, limits, answer = await _decide_all(
            state,
            snapshot.neighbours,
            partial(self._calls.reconcile, state),
            NO_AGENDA if shown is None else shown.agenda,
        )
        maintenance = plan_maintenance(shown, answer, limits, drafts, self._gate)
        return await self._embedded(state, RunPlan(snapshot.neighbours, drafts, maintenance))

    async def plan_by_rules(self, state: RunState, neighbours: Neighbours) -> RunPlan:
        """The same without a model, and without words that would have to be embedded first."""
        drafts, limits, _ = await _decide_all(state, neighbours, self._ask_rules, NO_AGENDA)
        return RunPlan(neighbours, drafts, MaintenancePlan(limits.left))

    async def _ask_rules(
        self, questions: Sequence[ReconcileQuestion], agenda: Agenda
    ) -> Reconciliation:
        answer = await self._rules.reconcile(questions, agenda)
        return replace(answer, decisions=tuple(map(_in_own_words, answer.decisions)))

    async def _embedded(self, state: RunState, plan: RunPlan) -> RunPlan:
        """Judge and embed the words that a reconciler brought; refused ones change nothing."""
        drafts = [draft if draft.new is None else self._judged(draft) for draft in plan.drafts]
        reworded = [draft for draft in drafts if draft.new is not None]
        granted = plan.maintenance.granted
        texts = [draft.content for draft in reworded] + [merge.own for merge in granted]
        vectors = await embedded(state.embedder, texts)
        new = {
            draft.index: replace(draft, new=text)
            for draft, text in zip(reworded, vectors, strict=False)
        }
        merges = [
            replace(merge, own=text)
            for merge, text in zip(granted, vectors[len(reworded) :], strict=True)
        ]
        return replace(
            plan,
            drafts=tuple(new.get(draft.index, draft) for draft in drafts),
            maintenance=plan.maintenance.with_merges(merges),
        )

    def _judged(self, draft: Draft) -> Draft:
        judged = self._gate.redacted(
            Proposal(draft.content.text, draft.proposed.confidence, extracted=True)
        )
        if self._gate.check(judged):
            return draft.decided(
                ReconcileDecision("ADD", reason="the gate refused the reworded text")
            )
        return replace(draft, new=EmbeddedText(judged.content, content_hash(judged.content)))


async def _decide_all(
    state: RunState, neighbours: Neighbours, ask: Ask, agenda: Agenda
) -> tuple[tuple[Draft, ...], DecisionLimits, Reconciliation | None]:
    """Every open draft decided, batch by batch; what is left; and the first answer, if any,
    which is the one that was shown the agenda.
    """
    groups = ConflictGroups(state.open_drafts, state.embedder.neighbour_floor)
    limits = DecisionLimits()
    decided: dict[int, Draft] = {}
    first: Reconciliation | None = None
    for batch in groups.batches():
        compared = [_compared(draft, neighbours, groups, decided) for draft in batch]
        questions = [draft.question for draft in compared if draft.open and draft.neighbours]
        answers: Sequence[ReconcileDecision] = ()
        if questions:
            answer = await ask(questions, agenda if first is None else NO_AGENDA)
            first = first or answer
            answers = answer.decisions
        done, limits = _decide_batch(compared, answers, limits)
        decided |= {draft.index: draft for draft in done}
    return tuple(decided.values()), limits, first


def _compared(
    draft: Draft, neighbours: Neighbours, groups: ConflictGroups, decided: Mapping[int, Draft]
) -> Draft:
    """The draft with its neighbours; what says exactly the same needs no decision."""
    stored = neighbours[draft.index]
    draft = replace(draft, neighbours=groups.neighbours(draft, stored.neighbours, decided))
    left = {near.memory_id for near in draft.neighbours}
    if stored.same_text in left and not draft.proposed.retracts:
        return draft.repeating(stored.same_text, "it is remembered already")
    return draft


def _decide_batch(
    batch: Sequence[Draft], answers: Sequence[ReconcileDecision], limits: DecisionLimits
) -> tuple[list[Draft], DecisionLimits]:
    """Those that nobody was asked about are new, or retract nothing."""
    asked = [draft.index for draft in batch if draft.open and draft.neighbours]
    given = dict(zip(asked, answers, strict=True))
    still_open = [draft for draft in batch if draft.open]
    decisions = [given.get(draft.index, _unasked(draft)) for draft in still_open]
    done, limits = decide(still_open, decisions, limits)
    later = {draft.index: draft for draft in done}
    return [later.get(draft.index, draft) for draft in batch], limits


def _unasked(draft: Draft) -> ReconcileDecision:
    if draft.proposed.retracts:
        return ReconcileDecision("NONE", reason="nothing remembered says so")
    return ReconcileDecision("ADD")


def _in_own_words(decision: ReconcileDecision) -> ReconcileDecision:
    """A decision that needs no further words, which would have to be embedded first."""
    if decision.event == "UPDATE":
        return replace(decision, event="SUPERSEDE", content=None)
    return (
        ReconcileDecision("ADD", reason=decision.reason) if decision.event == "MERGE" else decision
    )
