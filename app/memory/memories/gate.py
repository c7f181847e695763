"""What a statement must be before it is remembered, and the row that records the decision. Pure.

Every rule is checked and every broken one is reported, so that a caller can fix all at once.
Rules that need the database (duplicates, rates) report in the same form from elsewhere. A recorded
decision never holds anything sensitive.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal

from pydantic import JsonValue

from app.identity.tenants.access import Principal
from app.language.text.injections import ATTACKS, addresses_model
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.normal_forms import length, weight
from app.language.text.sensitive import (
    NO_STOP_WORDS,
    Finding,
    Kind,
    StopWords,
    find_sensitive,
    find_sensitive_in,
    redact,
    redact_in,
)
from app.platform.database.base import new_id


@dataclass(frozen=True, slots=True)
class Proposal:
    """A statement to be remembered.

    `confidence` is 1.0 for what a person saves, and the model's for what was extracted; it is
    checked either way. What was `extracted` or derived may give no order of any kind; what
    somebody saves as it is may hold a rule ("the assistant should recommend vegan food"), but no
    attack.
    """

    content: str
    confidence: float = 1.0
    source_error: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    extracted: bool = False


@dataclass(frozen=True, slots=True)
class GateReason:
    """One broken rule. `code` is a promise; `figures` and `detail` never hold the content."""

    code: str
    detail: str
    figures: Mapping[str, JsonValue]


Scan = Callable[[str], Sequence[Finding]]
"""Finds what is sensitive in a text."""


Action = Literal["reject", "redact", "allow"]


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules that a proposal alone decides.

    Args:
        secrets: what becomes of keys and passwords.
        identifiers: what becomes of card, identity and account numbers.
        stop_words: what the deployment keeps out of memory.
        min_confidence: lowest that passes, 0 to 1.
        min_length: fewest code points that pass; one of a Chinese, Japanese or Korean script,
            which says about as much as a syllable, counts as two.
        max_length: most code points that pass.

    """

    min_confidence: float = 0.7
    min_length: int = 5
    max_length: int = 2000
    secrets: Action = "reject"
    identifiers: Action = "reject"
    stop_words: StopWords = NO_STOP_WORDS

    @property
    def for_imports(self) -> "Gate":
        """Without the rules on confidence and least length: what another product remembered keeps
        its place, with the confidence that it had there.
        """
        return replace(self, min_confidence=0.0, min_length=1)

    def redacted(self, proposal: Proposal) -> Proposal:
        """The proposal with what is to be redacted redacted; `check` is for the result."""
        kinds = self._kinds("redact")
        if not kinds:
            return proposal
        error = proposal.source_error
        return replace(
            proposal,
            content=redact(proposal.content, kinds),
            source_error=None if error is None else redact(error, kinds),
            metadata={
                redact(key, kinds): redact_in(value, kinds, label=key)
                for key, value in proposal.metadata.items()
            },
        )

    def _kinds(self, action: Action) -> Sequence[Kind]:
        return _kinds(action, self.secrets, self.identifiers)

    def check(self, proposal: Proposal, *, scan: Scan = find_sensitive) -> list[GateReason]:
        """Return every broken rule, in the same order each time; nothing when all hold.

        Args:
            proposal: the statement.
            scan: remembers, for a batch, what it found in a text that all of it share.

        """
        found = (
            self._confidence(proposal.confidence),
            self._length(proposal.content),
            self._error_length(proposal.source_error),
            _sensitive(proposal, self._kinds("reject"), scan),
            self._stopped(proposal.content),
            _injection(proposal),
        )
        return [reason for reason in found if reason is not None]

    def refuses(self, text: str) -> bool:
        """Whether what is said must not be kept, in whatever form: in a profile or a summary."""
        return bool(self.check_kept(text))

    def check_kept(self, text: str, *, extracted: bool = True) -> list[GateReason]:
        """The rules that a text breaks which is kept and is no memory: of a block, a profile."""
        proposal = Proposal(text, extracted=extracted)
        found = (
            _sensitive(proposal, self._kinds("reject"), find_sensitive),
            self._stopped(text),
            _injection(proposal),
        )
        return [reason for reason in found if reason is not None]

    def cleaned(self, text: str) -> str:
        """The sentences of a text that may be kept, with what is to be redacted redacted.

        Empty where nothing may. A sentence that anything sensitive reaches into goes whole.
        """
        kinds = self._kinds("reject")
        found = [each for each in find_sensitive(text) if each.kind in kinds]
        kept, start = [], 0
        for sentence in _SENTENCE_END.split(text):
            end = start + len(sentence)
            touched = any(each.start < end and each.end > start for each in found)
            if not touched and not self.refuses(sentence):
                kept.append(sentence)
            start = end
        result = redact("".join(kept), self._kinds("redact")).strip()
        # What stood apart may be a secret or an order once it stands together.
        return "" if self.refuses(result) else result

    def _confidence(self, confidence: float) -> GateReason | None:
        if confidence >= self.min_confidence:
            return None
        return GateReason(
            "low_confidence",
            f"The confidence is below {self.min_confidence:g}.",
            # Not a number passes no comparison, and JSON cannot carry it, nor infinity.
            {
                "confidence": confidence if math.isfinite(confidence) else None,
                "minimum": self.min_confidence,
            },
        )

    def _length(self, content: str) -> GateReason | None:
        count = length(content)
        if weight(content) < self.min_length:
            return GateReason(
                "too_short",
                f"The content has fewer than {self.min_length} characters.",
                {"length": count, "minimum": self.min_length},
            )
        if count > self.max_length:
            return GateReason(
                "too_long",
                f"The content has more than {self.max_length} characters;"
                " a longer text belongs into documents, where it is split into passages.",
                {"length": count, "maximum": self.max_length},
            )
        return None

    def _stopped(self, content: str) -> GateReason | None:
        if not self.stop_words(content):
            return None
        return GateReason("stop_word", "A word stands in it that is kept out of memory here.", {})

    def _error_length(self, source_error: str | None) -> GateReason | None:
        count = length(source_error or "")
        if count <= self.max_length:
            return None
        return GateReason(
            "too_long",
            f"The source_error has more than {self.max_length} characters.",
            {"field": "source_error", "length": count, "maximum": self.max_length},
        )


@cache
def _kinds(action: Action, secrets: Action, identifiers: Action) -> Sequence[Kind]:
    actions: dict[Kind, Action] = {"secret": secrets, "identifier": identifiers}
    return [kind for kind, wanted in actions.items() if wanted == action]


_SENTENCE_END = lazy_pattern(r"(?<=[。！？])|(?<=[.!?]\s)|(?<=\n)")


def _injection(proposal: Proposal) -> GateReason | None:
    for text in (proposal.content, proposal.source_error or ""):
        rule = addresses_model(text)
        if rule is not None and (proposal.extracted or rule in ATTACKS):
            return GateReason(
                "injection", "It addresses the model instead of telling.", {"rule": rule}
            )
    return None


def _sensitive(proposal: Proposal, kinds: Collection[Kind], scan: Scan) -> GateReason | None:
    if not kinds:
        return None
    everywhere = {
        "content": scan(proposal.content),
        "source_error": scan(proposal.source_error or ""),
        "metadata": find_sensitive_in(dict(proposal.metadata)),
    }
    if not any(everywhere.values()):
        return None
    found = {
        name: [finding for finding in findings if finding.kind in kinds]
        for name, findings in everywhere.items()
    }
    fields = [name for name, findings in found.items() if findings]
    if not fields:
        return None
    findings = [finding for name in fields for finding in found[name]]
    detectors = sorted({finding.detector for finding in findings})
    return GateReason(
        "sensitive",
        f"Something that must not be remembered stands in {', '.join(fields)}:"
        f" {', '.join(detectors)}.",
        {
            "count": len(findings),
            "detectors": ", ".join(detectors),
            "fields": ", ".join(fields),
        },
    )


RECORDED_CHARACTERS = 2000
"""So many characters of a text are recorded with the verdict on it; a longer one is cut."""

CUT = "…"
"""Stands behind what is recorded of a longer text."""

STORED = "STORED"
"""The event of a refusal whose text somebody has stored after all."""

Obstacle = Literal["accepted", "stored", "sensitive", "too_long", "not_kept"]


KEPT_FIELDS: Final = (
    "attribute", "tier", "visibility", "valid_from", "valid_to", "expires_at", "source_error",
)  # fmt: skip
"""What is recorded, beside its text and owner, of a memory that was refused."""


def obstacle(
    verdict: str,
    event: str | None,
    codes: Collection[str],
    content: str | None,
    scope: str,
    request: Mapping[str, Any] | None,
) -> Obstacle | None:
    """Why the text of a recorded verdict cannot be stored after all; None where it can."""
    whole = bool(content) and len(content or "") <= RECORDED_CHARACTERS
    # Nobody knows of older verdicts whether all members of the project may see the text.
    private = scope == "project" and request is None
    obstacles: dict[Obstacle, bool] = {
        "accepted": verdict != "rejected",
        "stored": event == STORED,
        "sensitive": "sensitive" in codes,
        "too_long": "too_long" in codes,
        "not_kept": not whole or private,
    }
    return next((name for name, there in obstacles.items() if there), None)


def verdict_row(
    principal: Principal,
    *,
    owner: Mapping[str, Any],
    content: str,
    source: str,
    accepted: bool,
    reasons: Sequence[GateReason] = (),
    request: Mapping[str, Any] | None = None,
    memory_id: str | None = None,
    event: str | None = None,
    evidence: Sequence[str] = (),
    job_id: str | None = None,
    extraction_id: str | None = None,
) -> dict[str, Any]:
    """A row of `gate_decisions`.

    Args:
        owner: names user, agent, session, project and scope.
        reasons: every broken rule; none for a refused statement means that it was known already.
        request: the columns that the memory would have; `KEPT_FIELDS` of a refused one are kept.
        memory_id: the memory it made, changed or repeats.
        event: what became of it; when left out, REJECT for a refused statement.
        evidence: ids of the messages that support it.
        job_id: the job that proposed it, and `extraction_id` its run.

    """
    codes = [reason.code for reason in reasons]
    return {
        "tenant_id": principal.tenant_id,
        "decision_id": new_id("gat"),
        "verdict": "accepted" if accepted else "rejected",
        "codes": codes or ([] if accepted else ["duplicate"]),
        "reasons": [asdict(reason) for reason in reasons],
        # A secret in any field keeps all of them out of the record.
        "content": None if "sensitive" in codes else _recorded(content),
        "request": None if accepted or _UNKEPT & set(codes) else _kept_fields(request),
        "user_id": owner["user_id"],
        "agent_id": owner["agent_id"],
        "session_id": owner["session_id"],
        "project_id": owner["project_id"],
        "scope": owner["scope"],
        "memory_id": memory_id,
        "source": source,
        "event": event or (None if accepted else "REJECT"),
        "evidence": list(evidence),
        "job_id": job_id,
        "extraction_id": extraction_id,
        "actor": principal.key_id,
    }


_UNKEPT: Final = {"sensitive", "too_long"}
"""Codes of texts that are not stored after all: nothing is kept to store them with."""


def _kept_fields(request: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if request is None:
        return None
    given = {name: request.get(name) for name in KEPT_FIELDS}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in given.items()
        if value is not None
    }


def _recorded(content: str) -> str:
    cut = len(content) > RECORDED_CHARACTERS
    return content[:RECORDED_CHARACTERS] + CUT if cut else content
