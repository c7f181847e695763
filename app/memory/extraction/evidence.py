"""Which proposals stand: evidence, scope, the gate, injections and echoes. Pure.

Every rule is asked and every broken one reported, as the gate does. What a model proposed is
judged like anything else: it is a request until the code agrees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from app.language.llm.extractor import ConversationTurn, Proposed, Scope
from app.language.text.echoes import SaidBack
from app.language.text.injections import ATTACKS, addresses_model
from app.language.text.normal_forms import content_hash
from app.language.text.signals import find_signals
from app.language.text.uploads import scrub_upload_mentions
from app.memory.extraction.drafts import Draft, EmbeddedText, not_allowed
from app.memory.memories.gate import Gate, GateReason, Proposal
from app.memory.memories.owner import MemoryOwner

SAID_BY_EITHER = {"decision", "event"}
"""What may rest on an assistant's word alone."""


@dataclass(frozen=True, slots=True)
class WritableScopes:
    """Who took part in what is read, and so where its statements may be stored.

    Args:
        agent_id: whose private memories they become; None lets every agent of the user see
            them.
        session_id: the conversation, when there is one.
        project_id: its project, when the user may write there.
        scope: the only scope there is, when the caller has named one.

    """

    user_id: str | None
    agent_id: str | None = None
    session_id: str | None = None
    project_id: str | None = None
    scope: Scope | None = None

    @property
    def names(self) -> tuple[Scope, ...]:
        """For whom a proposal may be meant here, the usual one first."""
        if self.scope is not None:
            return (self.scope,)
        ids = {"user": self.user_id, "session": self.session_id, "project": self.project_id}
        everyone: tuple[Scope, ...] = ("user", "session", "project")
        return tuple(scope for scope in everyone if ids[scope] is not None)

    @property
    def usual(self) -> MemoryOwner:
        """Whose a memory is when nothing else is said."""
        owner = self.owner_of(self.names[0])
        assert owner is not None  # noqa: S101 (the first scope is one of those allowed)
        return owner

    def owner_of(self, scope: Scope) -> MemoryOwner | None:
        """Columns of a memory of this scope; None when it is not allowed here.

        Knowledge that all users of an agent share is only ever saved when a caller asks for
        it by name: a conversation cannot write into it.
        """
        if scope not in self.names:
            return None
        ids = {
            "user": self.user_id,
            "session": self.session_id,
            "project": self.project_id,
            "agent": self.agent_id,
        }
        scope_id = ids[scope]
        if scope_id is None:
            return None
        return MemoryOwner(
            scope=scope,
            scope_id=scope_id,
            user_id=None if scope == "agent" else self.user_id,
            agent_id=self.agent_id,
            session_id=self.session_id,
            project_id=self.project_id,
        )


@dataclass(frozen=True, slots=True)
class EvidenceContext:
    """What proposals are judged by.

    Args:
        turns: everything the extractor saw, in order.
        said_back: system texts, injected texts and recalled memories.
        stored: whether the turns are messages that evidence can name later.

    """

    turns: Sequence[ConversationTurn]
    scopes: WritableScopes
    said_back: Sequence[str] = ()
    stored: bool = True


def judge(proposals: Sequence[Proposed], context: EvidenceContext, gate: Gate) -> tuple[Draft, ...]:
    """One draft per proposal, in order; those that broke a rule are rejected.

    The second of two equal statements of a run is nothing new.
    """
    turns = {turn.message_id: turn for turn in context.turns}
    confirmed = _confirmed(context.turns)
    words = _Words(context)
    seen: set[tuple[MemoryOwner, bytes]] = set()
    drafts: list[Draft] = []
    for index, proposed in enumerate(proposals):
        draft = _judged(index, proposed, context, gate, turns, confirmed, words)
        key = (draft.owner, draft.own.content_hash)
        if draft.open and key in seen:
            draft = draft.repeating(None, "the same statement came twice in this run")
        elif draft.open:
            seen.add(key)
        drafts.append(draft)
    return tuple(drafts)


def _judged(
    index: int,
    proposed: Proposed,
    context: EvidenceContext,
    gate: Gate,
    turns: Mapping[str, ConversationTurn],
    confirmed: Mapping[str, ConversationTurn],
    words: "_Words",
) -> Draft:
    content = scrub_upload_mentions(proposed.content).strip()
    redacted = gate.redacted(
        Proposal(content, proposed.confidence, proposed.source_error, extracted=True)
    )
    proposed = replace(
        proposed, content=redacted.content, source_error=redacted.source_error or None
    )
    scopes = context.scopes
    owner = scopes.owner_of(proposed.scope)
    evidence = proposed.evidence if context.stored else ()
    reasons = gate.check(redacted)
    if owner is None:
        reasons.append(not_allowed(proposed.scope, scopes.names))
    reasons += _unsupported(proposed, turns, confirmed)
    said_by = [turns[message_id] for message_id in proposed.evidence if message_id in turns]
    reasons += _hostile(proposed, said_by, words)
    said_at = max((turn.said_at for turn in said_by), default=None)
    owner = owner or scopes.usual
    speaker = _speaker(said_by, owner) if proposed.quoted else None
    proposed = replace(proposed, said_at=said_at, speaker=speaker)
    text = proposed.content
    if reasons:
        own = EmbeddedText(text)
        return Draft(index, proposed, owner, evidence, own, speaker=speaker).rejected(reasons)
    own = EmbeddedText(text, content_hash(text))
    return Draft(index, proposed, owner, evidence, own, speaker=speaker)


def _speaker(said_by: Sequence[ConversationTurn], owner: MemoryOwner) -> str | None:
    """Whose the words of a quotation are, as its newest turn says; the user's before others'."""
    newest = max(said_by, key=lambda turn: (turn.role == "user", turn.said_at), default=None)
    if newest is None:
        return None
    return newest.name or (owner.user_id if newest.role == "user" else newest.role)


def _unsupported(
    proposed: Proposed,
    turns: Mapping[str, ConversationTurn],
    confirmed: Mapping[str, ConversationTurn],
) -> list[GateReason]:
    """Whether messages that exist say so, and somebody who may."""
    unknown = sum(message_id not in turns for message_id in proposed.evidence)
    if unknown or not proposed.evidence:
        return [
            GateReason(
                "evidence_missing",
                "It names no message that says so, or one that was not read.",
                {"named": len(proposed.evidence), "unknown": unknown},
            )
        ]
    said_by = [turns[message_id] for message_id in proposed.evidence]
    if all(turn.context and _is_read(confirmed.get(turn.message_id)) for turn in said_by):
        return [GateReason("evidence_missing", "It rests on messages read before.", {"read": True})]
    by_user = any(turn.role == "user" or turn.message_id in confirmed for turn in said_by)
    if by_user or proposed.memory_type in SAID_BY_EITHER:
        return []
    return [
        GateReason(
            "unconfirmed", "Only the assistant said so, and the user did not confirm it.", {}
        )
    ]


def _is_read(answer: ConversationTurn | None) -> bool:
    """Whether an answer brings nothing new: there is none, or it was read before."""
    return answer is None or answer.context


def _confirmed(turns: Sequence[ConversationTurn]) -> dict[str, ConversationTurn]:
    """By the id of an assistant's turn that the user's next words confirm, these words."""
    return {
        said.message_id: answer
        for said, answer in pairwise(turns)
        if said.role == "assistant"
        and answer.role == "user"
        and "reinforcement" in find_signals(answer.content)
    }


class _Words:
    """What was said, read once for all proposals that rest on it: a message may be long, and many
    statements may be drawn from it.
    """

    def __init__(self, context: EvidenceContext) -> None:
        own = [turn.content for turn in context.turns if turn.role == "user"]
        self.said_back = SaidBack(context.said_back, own)
        self._rules: dict[str, str | None] = {}

    def rule(self, turn: ConversationTurn) -> str | None:
        """Which rule says that a turn addresses the model."""
        if turn.message_id not in self._rules:
            self._rules[turn.message_id] = addresses_model(turn.content)
        return self._rules[turn.message_id]


def _hostile(
    proposed: Proposed, said_by: Sequence[ConversationTurn], words: _Words
) -> list[GateReason]:
    """Text that addresses the model, and text that was only said back."""
    # The gate looks at the words of the proposal itself.
    rule = None
    if said_by and addresses_model(proposed.content) is None:
        # A user may ask for a role and tell of themself in one breath: in what was said only
        # plain attacks count, and only when nothing else supports the statement.
        rules = [words.rule(turn) for turn in said_by]
        rule = rules[0] if ATTACKS.issuperset(rules) else None
    if rule is not None:
        return [
            GateReason("injection", "It addresses the model instead of telling.", {"rule": rule})
        ]
    covered = words.said_back.share(proposed.content)
    if covered is None:
        return []
    return [
        GateReason(
            "echo",
            "It says back what was recalled or injected, and the user did not say it.",
            {"covered": round(covered, 3)},
        )
    ]
