"""Reconcile: what becomes of every draft and of the agenda, decided among a snapshot. Writes
nothing but what model calls cost.

A model is asked once about all drafts of a run, and its answers are carried out in the order of
what was said; rules cost nothing, so each draft is decided about among what became of the earlier
ones.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from app.language.llm.reconciler import (
    NO_AGENDA,
    Neighbour,
    ReconcileDecision,
    Reconciler,
    Reconciliation,
)
from app.language.text.normal_forms import content_hash
from app.memory.extraction.decisions import DecisionLimits, decide, ended_by_later
from app.memory.extraction.drafts import Draft, EmbeddedText, embedded
from app.memory.extraction.maintenance import MaintenancePlan, plan_maintenance
from app.memory.extraction.model_calls import ModelCalls
from app.memory.extraction.related_drafts import RelatedDrafts, as_it_is_now
from app.memory.extraction.run_state import RunState
from app.memory.extraction.snapshot_repository import Neighbours, RunSnapshot
from app.memory.memories.gate import Gate, Proposal

REFUSED = "the gate refused the reworded text"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run will store.

    Args:
        neighbours: what was decided among.
        drafts: every open one of the run, decided, in the order in which they may be stored.
        asked: what a model decided about each that it was asked about, by index.

    """

    neighbours: Neighbours
    drafts: tuple[Draft, ...]
    maintenance: MaintenancePlan
    asked: Mapping[int, ReconcileDecision] = field(default_factory=dict)

    def is_outdated(self, now: Neighbours) -> bool:
        """Whether neighbours came, went or changed since."""
        return any(self._moved(index, now) for index in self.neighbours)

    def answers_for(self, now: Neighbours) -> dict[int, ReconcileDecision]:
        """What was decided about drafts whose neighbours are the same, which nobody need be asked
        about again; a decision may name neighbours of other drafts, too.
        """
        changed = {memory_id for memory_id, _ in _versions(self.neighbours) ^ _versions(now)}
        return {
            index: decision
            for index, decision in self.asked.items()
            if not self._moved(index, now) and changed.isdisjoint(decision.memory_ids)
        }

    def _moved(self, index: int, now: Neighbours) -> bool:
        before, after = self.neighbours[index], now.get(index)
        if after is None or after.versions != before.versions:
            return True
        named = self.asked[index].memory_ids if index in self.asked else ()
        return any(before.besides.get(each) != after.besides.get(each) for each in named)


def _versions(neighbours: Neighbours) -> set[tuple[str, int]]:
    return {each for near in neighbours.values() for each in near.versions}


class DraftReconciliation:
    """Decides by the run's model, or by rules where there is none, or no time to ask one."""

    def __init__(self, calls: ModelCalls, gate: Gate, rules: Reconciler) -> None:
        self._calls = calls
        self._gate = gate
        self._rules = rules

    async def plan(
        self, state: RunState, snapshot: RunSnapshot, before: RunPlan | None = None
    ) -> RunPlan:
        """Give every open draft its event, by one call of a model where there is something to
        compare; it is shown the agenda, too. New words are judged and embedded.

        Args:
            before: the plan that neighbours have outrun: only about what they concern is the
                model asked again.

        Raises:
            ModelUnavailableError, EmbeddingUnavailableError: nothing was decided; try again.

        """
        reconciler = state.model.reconciler
        if reconciler.model is None:
            plan = await _by_rules(state, snapshot.neighbours, reconciler, in_own_words=False)
            return await self._embedded(state, plan)
        neighbours = snapshot.neighbours
        known = {} if before is None else before.answers_for(neighbours)
        related = RelatedDrafts(state.open_drafts, state.embedder.neighbour_floor)
        questions = [
            replace(draft, neighbours=related.undecided(draft, neighbours[draft.index].neighbours))
            for draft in state.open_drafts
            if draft.index not in known and not _is_known(draft, neighbours)
        ]
        answer: Reconciliation | None = None
        if any(draft.neighbours for draft in questions):
            agenda = NO_AGENDA if snapshot.agenda is None else snapshot.agenda.agenda
            besides = _besides(state, neighbours, questions)
            answer = await self._calls.reconcile(
                state, [draft.question for draft in questions], agenda, besides
            )
            given = zip(questions, answer.decisions, strict=True)
            known |= {draft.index: decision for draft, decision in given}
        drafts, limits = _carried_out(state, neighbours, related, known)
        maintenance = plan_maintenance(snapshot.agenda, answer, limits, drafts, self._gate)
        return await self._embedded(state, RunPlan(neighbours, drafts, maintenance, known))

    async def plan_by_rules(self, state: RunState, neighbours: Neighbours) -> RunPlan:
        """The same without a model, and without words that would have to be embedded first."""
        return await _by_rules(state, neighbours, self._rules, in_own_words=True)

    async def _embedded(self, state: RunState, plan: RunPlan) -> RunPlan:
        """Judge and embed the words that a reconciler brought; refused ones change nothing."""
        drafts = [self._judged(draft) for draft in plan.drafts]
        granted = plan.maintenance.granted
        brought = [text for draft in drafts for text in draft.brought]
        vectors = await embedded(state.embedder, [*brought, *(merge.own for merge in granted)])
        ready = iter(vectors)
        drafts = [draft.with_brought(ready) for draft in drafts]
        merges = [replace(merge, own=text) for merge, text in zip(granted, ready, strict=True)]
        return replace(
            plan,
            drafts=tuple(drafts),
            maintenance=plan.maintenance.with_merges(merges),
        )

    def _judged(self, draft: Draft) -> Draft:
        """With its new words as the gate leaves them; without a change that needs refused ones,
        and without an end of memories of which something refused would be lost.
        """
        new = None if draft.new is None else self._admitted(draft.new, draft)
        if new is None and draft.new is not None:
            return draft.decided(ReconcileDecision("ADD", reason=REFUSED))
        texts = [(rest, self._admitted(rest.text, draft)) for rest in draft.remainders]
        lost = {rest.memory_id for rest, text in texts if text is None}
        kept = (replace(rest, text=text) for rest, text in texts if text is not None)
        draft = replace(
            draft, new=new, remainders=tuple(rest for rest in kept if rest.memory_id not in lost)
        )
        return _sparing(draft, lost) if lost else draft

    def _admitted(self, words: EmbeddedText, draft: Draft) -> EmbeddedText | None:
        """Words as the gate leaves them; None where it refuses them."""
        judged = self._gate.redacted(
            Proposal(words.text, draft.proposed.confidence, extracted=True)
        )
        if self._gate.check(judged):
            return None
        return EmbeddedText(judged.content, content_hash(judged.content))


def _sparing(draft: Draft, spared: Collection[str]) -> Draft:
    """Without an end of some of its memories. What it was to replace contradicts it then."""
    left = tuple(each for each in draft.target_ids if each not in spared)
    if draft.event == "DELETE":
        if not left:
            return draft.decided(ReconcileDecision("NONE", reason=REFUSED))
        return replace(draft, target_ids=left)
    against = () if draft.proposed.is_past else (*draft.conflicts, *sorted(spared))
    if not left:
        return draft.decided(ReconcileDecision("ADD", reason=REFUSED, conflicts=against))
    return replace(draft, target_ids=left, conflicts=against)


async def _by_rules(
    state: RunState, neighbours: Neighbours, rules: Reconciler, *, in_own_words: bool
) -> RunPlan:
    """Every open draft decided by rules, among what became of the earlier ones."""
    related = RelatedDrafts(state.open_drafts, state.embedder.neighbour_floor)
    limits = DecisionLimits.of_run(len(state.open_drafts))
    decided: dict[int, Draft] = {}
    for proposal in state.open_drafts:
        near = related.decided(proposal, neighbours[proposal.index].neighbours, decided)
        draft = _repeated(replace(proposal, neighbours=near), neighbours)
        decision = _unasked(draft)
        if draft.open and near:
            [decision] = (await rules.reconcile([draft.question])).decisions
            decision = _in_own_words(decision) if in_own_words else decision
        decided[draft.index], limits = _decided(draft, decision, limits)
    return RunPlan(neighbours, tuple(decided.values()), MaintenancePlan(limits.left))


def _carried_out(
    state: RunState,
    neighbours: Neighbours,
    related: RelatedDrafts,
    given: Mapping[int, ReconcileDecision],
) -> tuple[tuple[Draft, ...], DecisionLimits]:
    """What a model decided about all drafts at once, one after the other; and what is left."""
    limits = DecisionLimits.of_run(len(state.open_drafts))
    decided: dict[int, Draft] = {}
    for proposal in state.open_drafts:
        shown = _all_shown(proposal, state, neighbours)
        near = related.all_decided(proposal, shown, decided)
        draft = _repeated(replace(proposal, neighbours=near), neighbours)
        decision = as_it_is_now(given.get(draft.index, _unasked(draft)), decided)
        done, limits = _decided(draft, decision, limits)
        decided[draft.index] = ended_by_later(done)
    return tuple(decided.values()), limits


def _all_shown(draft: Draft, state: RunState, neighbours: Neighbours) -> list[Neighbour]:
    """Memories that a model was shown beside any statement of the bucket, its own first."""
    own = neighbours[draft.index].neighbours
    found = {near.memory_id: near for near in own}
    for other in state.buckets[draft.owner]:
        for near in neighbours[other.index].neighbours:
            found.setdefault(near.memory_id, replace(near, similarity=0.0))
    for near, _ in neighbours[draft.index].besides.values():
        found.setdefault(near.memory_id, near)
    return list(found.values())


def _besides(
    state: RunState, neighbours: Neighbours, questions: Sequence[Draft]
) -> tuple[Neighbour, ...]:
    """What a model is shown of the buckets beside the neighbours of what it is asked about."""
    near = {each.memory_id for draft in questions for each in draft.neighbours}
    found = {
        memory_id: memory
        for drafts in state.buckets.values()
        for memory_id, (memory, _) in neighbours[drafts[0].index].besides.items()
        if memory_id not in near
    }
    return tuple(found.values())


def _is_known(draft: Draft, neighbours: Neighbours) -> bool:
    """Whether a memory says exactly the same, which needs no decision."""
    return neighbours[draft.index].same_text is not None and not draft.proposed.retracts


def _repeated(draft: Draft, neighbours: Neighbours) -> Draft:
    """Repeating the memory that says exactly the same, unless the run has ended that."""
    same = neighbours[draft.index].same_text
    if _is_known(draft, neighbours) and same in {near.memory_id for near in draft.neighbours}:
        return draft.repeating(same, "it is remembered already")
    return draft


def _decided(
    draft: Draft, decision: ReconcileDecision, limits: DecisionLimits
) -> tuple[Draft, DecisionLimits]:
    if not draft.open:
        return draft, limits
    [done], limits = decide([draft], [decision], limits)
    return done, limits


def _unasked(draft: Draft) -> ReconcileDecision:
    """Of what nobody was asked about: it is new, or retracts nothing."""
    if draft.proposed.retracts:
        return ReconcileDecision("NONE", reason="nothing remembered says so")
    return ReconcileDecision("ADD")


def _in_own_words(decision: ReconcileDecision) -> ReconcileDecision:
    """A decision that needs no further words, which would have to be embedded first."""
    if decision.event == "UPDATE":
        return replace(decision, event="SUPERSEDE", content=None, keeps_start=True)
    return (
        ReconcileDecision("ADD", reason=decision.reason) if decision.event == "MERGE" else decision
    )
