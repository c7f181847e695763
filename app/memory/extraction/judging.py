"""Which proposals stand: evidence, scope, the gate, injections and echoes. Pure.

Every rule is asked and every broken one reported, as the gate does. What a model proposed is
judged like anything else: it is a wish until the code agrees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from app.language.llm.extractor import ConversationTurn, Proposed
from app.language.text.echoes import is_echo
from app.language.text.injections import addresses_model
from app.language.text.normal_forms import content_hash
from app.language.text.signals import find_signals
from app.language.text.uploads import scrub_upload_mentions
from app.memory.extraction.drafts import Draft, Words, not_allowed
from app.memory.extraction.grounds import Grounds
from app.memory.memories.gate import Gate, GateReason, Proposal

SAID_BY_EITHER = {"decision", "event"}
"""What may rest on an assistant's word alone."""


ATTACKS = {"prompt_markup", "override", "reveal", "safety_off", "secrecy"}
"""Rules of `text/injections.py` that no honest message breaks."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """What proposals are judged by.

    Args:
        turns: everything the extractor saw, in order.
        said_back: system texts, injected texts and recalled memories.
        stored: whether the turns are messages that evidence can name later.

    """

    turns: Sequence[ConversationTurn]
    grounds: Grounds
    said_back: Sequence[str] = ()
    stored: bool = True


def judge(proposals: Sequence[Proposed], hearing: Hearing, gate: Gate) -> list[Draft]:
    """One draft per proposal, in order; those that broke a rule are rejected.

    The second of two equal statements of a run is nothing new.
    """
    turns = {turn.message_id: turn for turn in hearing.turns}
    confirmed = _confirmed(hearing.turns)
    drafts = [
        _judged(index, one, hearing, gate, turns, confirmed) for index, one in enumerate(proposals)
    ]
    first: dict[tuple[object, bytes], Draft] = {}
    for draft in drafts:
        if (
            draft.open
            and first.setdefault((draft.place, draft.own.content_hash), draft) is not draft
        ):
            draft.repeats(None, "the same statement came twice in this run")
    return drafts


def _judged(
    index: int,
    proposed: Proposed,
    hearing: Hearing,
    gate: Gate,
    turns: Mapping[str, ConversationTurn],
    confirmed: set[str],
) -> Draft:
    content = scrub_upload_mentions(proposed.content).strip()
    redacted = gate.redacted(Proposal(content, proposed.confidence, proposed.source_error))
    proposed = replace(
        proposed, content=redacted.content, source_error=redacted.source_error or None
    )
    place = hearing.grounds.place(proposed.scope)
    evidence = proposed.evidence if hearing.stored else ()
    words = Words(proposed.content)
    draft = Draft(index, proposed, place or hearing.grounds.first, evidence, words)
    reasons = gate.check(redacted)
    if place is None:
        reasons.append(not_allowed(proposed.scope, hearing.grounds.scopes))
    reasons += _unsupported(proposed, turns, confirmed)
    reasons += _hostile(proposed, hearing, turns)
    if reasons:
        draft.reject(reasons)
    else:
        words.content_hash = content_hash(words.text)
    return draft


def _unsupported(
    proposed: Proposed, turns: Mapping[str, ConversationTurn], confirmed: set[str]
) -> list[GateReason]:
    """Whether messages that exist say so, and somebody who may."""
    unknown = sum(one not in turns for one in proposed.evidence)
    if unknown or not proposed.evidence:
        return [
            GateReason(
                "evidence_missing",
                "It names no message that says so, or one that was not read.",
                {"named": len(proposed.evidence), "unknown": unknown},
            )
        ]
    said_by = [turns[one] for one in proposed.evidence]
    if all(turn.context for turn in said_by):
        return [GateReason("evidence_missing", "It rests on messages read before.", {"read": True})]
    by_user = any(turn.role == "user" or turn.message_id in confirmed for turn in said_by)
    if by_user or proposed.memory_type in SAID_BY_EITHER:
        return []
    return [
        GateReason(
            "unconfirmed", "Only the assistant said so, and the user did not confirm it.", {}
        )
    ]


def _confirmed(turns: Sequence[ConversationTurn]) -> set[str]:
    """Assistant turns that the user's next words confirm."""
    pairs = pairwise(turns)
    return {
        said.message_id
        for said, answer in pairs
        if said.role == "assistant"
        and answer.role == "user"
        and "reinforcement" in find_signals(answer.content)
    }


def _hostile(
    proposed: Proposed, hearing: Hearing, turns: Mapping[str, ConversationTurn]
) -> list[GateReason]:
    """Text that addresses the model, and text that was only said back."""
    said_by = [turns[one] for one in proposed.evidence if one in turns]
    rule = addresses_model(proposed.content)
    if rule is None and said_by:
        # A user may ask for a role and tell of themself in one breath: in what was said only
        # plain attacks count, and only when nothing else supports the statement.
        rules = [addresses_model(turn.content) for turn in said_by]
        rule = rules[0] if ATTACKS.issuperset(rules) else None
    if rule is not None:
        return [
            GateReason("injection", "It addresses the model instead of telling.", {"rule": rule})
        ]
    own_words = [turn.content for turn in hearing.turns if turn.role == "user"]
    covered = is_echo(proposed.content, hearing.said_back, own_words)
    if covered is None:
        return []
    return [
        GateReason(
            "echo",
            "It says back what was recalled or injected, and the user did not say it.",
            {"covered": round(covered, 3)},
        )
    ]
