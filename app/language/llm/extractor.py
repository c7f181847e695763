"""The port to whatever turns a conversation into proposals, and what every adapter owes.

Adapters: `rules/extractor` (keyless, deterministic) and `llm/model_extractor` (any
OpenAI-compatible endpoint). What an adapter proposes is judged afterwards, by code that
trusts neither: the gate, the evidence, the limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

Scope = Literal["session", "project", "user", "agent"]

MEMORY_TYPES = (
    "preference", "fact", "skill", "habit", "event", "context",
    "constraint", "decision", "goal", "correction", "knowledge", "experience",
)  # fmt: skip

LONGEST_VALID_DAYS = 3650
"""What is thought to hold for longer is thought to last."""


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One message as an extractor sees it.

    Args:
        message_id: what evidence names.
        content: what was said, without upload blocks and injected text.
        said_at: relative dates are resolved against it.
        context: read before; there to understand the rest, never evidence of its own.
        parts: names of images and other parts that came with it.

    """

    message_id: str
    role: Literal["user", "assistant"]
    content: str
    said_at: datetime
    name: str | None = None
    context: bool = False
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownMemory:
    """What is remembered already near to what is read; `said_at` is when it was said."""

    content: str
    attribute: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """What to read.

    Args:
        turns: in the order of the conversation; `context` ones come first.
        signals: what capture noticed (`text/signals.py`).
        prompt: the caller's or the agent's own instructions, added to ours.
        scopes: for whom a proposal may be meant here.
        recalled: memories that stood in the model's context meanwhile; saying them back is no
            news.
        known: memories that the turns may be about, nearest first, whether a model was shown
            them or not: a change of them is news.
        attributes: those that memories of the same owners have, last used first.
        handed_over: somebody gave this one message to be remembered, outside of a conversation.
        user_name: of the user, where the application knows it; others may speak beside them.
        ended: the turns are a whole session that has ended, and what it taught is asked for too.

    """

    turns: Sequence[ConversationTurn]
    signals: frozenset[str] = frozenset()
    prompt: str | None = None
    scopes: Sequence[Scope] = ("user", "session")
    recalled: Sequence[str] = ()
    known: Sequence[KnownMemory] = ()
    attributes: Sequence[str] = ()
    handed_over: bool = False
    user_name: str | None = None
    ended: bool = False


SPEAKER: Final = "user"
"""The name of the user themself in a relation, in every language."""

MOST_RELATIONS: Final = 8
"""Of one statement; one that joins more is a list."""


@dataclass(frozen=True, slots=True)
class ProposedRelation:
    """Who or what a statement joins, as one triple.

    Args:
        source, destination: names letter for letter, in the language of the message; SPEAKER
            is the user themself.
        source_type, destination_type: what they are, in one English word: `person`.
        relation: in English snake_case: `studies_at`.

    """

    source: str
    relation: str
    destination: str
    source_type: str = "thing"
    destination_type: str = "thing"


@dataclass(frozen=True, slots=True)
class Proposed:
    """A statement that might be remembered, in the speaker's language.

    Args:
        content: one sentence that stands alone, about the user in the third person
            ("The user lives in Munich." / "用户住在慕尼黑。"), or `quoted`.
        memory_type: one of MEMORY_TYPES.
        confidence: 0 to 1.
        evidence: ids of the turns that say so.
        attribute: what it gives the value of, as `subject.name` in snake_case
            (`user.residence`), where only one value can hold at a time; else None.
        valid_from, valid_to: when it holds, resolved; None where nothing was said.
        takes_effect: the day to come on which an event takes place or a decision counts; the
            statement itself is known from now on, and what it replaces ends on that day.
        expected_valid_days: for how long such a thing usually holds, 1 to LONGEST_VALID_DAYS;
            None where it lasts, or nobody can tell.
        source_error: of a correction, the mistake it mends.
        retracts: it says that something remembered holds no longer, and nothing in its place
            ("The user has no dog any more").
        relations: what of it is a matter of the graph; they stand and fall with it.
        quoted: the content is the speaker's own words ("I moved to Lisbon last month").
        presupposed: a question or request takes it for granted, nobody tells it as news: it ends
            nothing that is remembered, and tells the graph nothing.
        said_at: when the newest turn of the evidence was said. Not the extractor's to give: it is
            filled in from the turns.
        speaker: whose words a quotation is, filled in as well; None in the third person.

    """

    content: str
    memory_type: str
    confidence: float
    evidence: tuple[str, ...]
    scope: Scope = "user"
    attribute: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    source_error: str | None = None
    retracts: bool = False
    expected_valid_days: int | None = None
    relations: tuple[ProposedRelation, ...] = ()
    quoted: bool = False
    said_at: datetime | None = None
    speaker: str | None = None
    takes_effect: datetime | None = None
    presupposed: bool = False

    @property
    def begins(self) -> datetime | None:
        """From when what it says holds; None where nothing was said."""
        return self.valid_from or self.takes_effect

    @property
    def due(self) -> datetime | None:
        """When it has most likely passed, or is to be done; None where nobody could tell."""
        return due_of(self.said_at, self.expected_valid_days)

    @property
    def is_past(self) -> bool:
        """Whether it was over when it was said, as in "lived in Rome until 2019"."""
        ends, said = self.valid_to, self.said_at
        return ends is not None and said is not None and ends <= said


def due_of(said_at: datetime | None, expected_valid_days: int | None) -> datetime | None:
    """The end of the days for which a statement is expected to hold."""
    if said_at is None or expected_valid_days is None:
        return None
    return said_at + timedelta(days=expected_valid_days)


@dataclass(frozen=True, slots=True)
class Malformed:
    """An entry of a model's answer that is no proposal. `detail` never holds its words."""

    index: int
    detail: str


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What asking cost; all zero without a model."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    latency_ms: int = 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found. No proposals is an answer; a failure is an error, never an empty one.

    Args:
        experienced: what an ended session taught was looked for, as `ended` asks; whoever leaves
            it false is asked with `summarise`.
        taught: whether what was read taught anything, where the session goes on; None where
            nobody can tell.

    """

    proposals: tuple[Proposed, ...]
    malformed: tuple[Malformed, ...] = ()
    use: ModelUse = field(default_factory=ModelUse)
    experienced: bool = False
    taught: bool | None = None


class Extractor(Protocol):
    """Finds what is worth remembering. One instance is shared by the whole process.

    Calls may overlap on one event loop, never block it for more than some milliseconds, and
    may be cancelled at any time.
    """

    @property
    def name(self) -> str:
        """What every answer that depends on it says: `rules/2`, `openai/gpt-4o-mini`."""
        ...

    @property
    def model(self) -> str | None:
        """The provider's name of the model; None without one."""
        ...

    @property
    def prompt_version(self) -> str | None:
        """The version of what the model is told; None without a model."""
        ...

    async def extract(self, request: ExtractionRequest) -> Extraction:
        """Proposals in the order of what was said; the same request may be sent again.

        Raises:
            ModelUnavailableError: nothing was read; `reason` and `retry_after` say when to
                try again.

        """
        ...

    async def summarise(self, request: ExtractionRequest) -> Extraction:
        """At most one proposal of type `experience`: what an ended session taught.

        Raises:
            ModelUnavailableError: as in `extract`.

        """
        ...
