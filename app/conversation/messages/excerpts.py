"""What a search of excerpts finds: pieces of messages, with what is to be shown of each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.language.text.pieces import ELLIPSIS


@dataclass
class FoundMessage:
    """A message of which pieces may be shown, with what their layout needs. Never changed: a frozen
    class takes three times as long to make, and there are a hundred in a context.

    Args:
        place: of its row in the first statement.
        sequence_no: its number in the session, whose last message has `session_messages`.
        read: gives what is searched of it; asked for at the first use of `text`.
        ends: where its pieces end in the text.
        read_request: gives what the user said right before, where an assistant says this.
        wish: whether the user states a wish in it.

    """

    place: int
    message_id: str
    session_id: str
    role: str
    name: str | None
    sequence_no: int
    session_messages: int
    said_at: datetime
    read: Callable[[], str]
    ends: Sequence[int]
    read_request: Callable[[], str] | None
    wish: bool
    _text: str | None = field(default=None, init=False)

    @property
    def text(self) -> str:
        """What is searched of it."""
        # A cached property takes a lock, which costs as much as reading.
        if self._text is None:
            self._text = self.read()
        return self._text

    def piece(self, number: int) -> str:
        """The words of one piece."""
        return self.text[self.ends[number - 1] if number else 0 : self.ends[number]]

    def shown(self, numbers: Iterable[int]) -> str:
        """Some pieces in order, joined where one follows another, with … where any is left out."""
        if len(self.ends) == 1:
            return self.text[: self.ends[0]]
        text = ""
        last = -1
        for number in sorted(numbers):
            piece = self.piece(number)
            if number > last + 1:
                text, piece = text.rstrip(), f" {ELLIPSIS} {piece.lstrip()}"
            text += piece
            last = number
        return f"{text.rstrip()} {ELLIPSIS}" if last < len(self.ends) - 1 else text


@dataclass(slots=True)
class FoundPiece:
    """A piece with all that its place comes from. Never changed, as a `FoundMessage`; a context has
    up to 400.

    Args:
        number: of the piece in its message, from 0.
        score: what it is ordered by, 0 to 1.
        similarity: cosine of query and piece, 0 to 1; None where nothing was compared.
        names: of the signals, and `added` what each added before the sum was scaled.

    """

    message: FoundMessage
    number: int
    score: float
    similarity: float | None
    names: Sequence[str]
    added: Sequence[float]

    @property
    def signals(self) -> dict[str, float]:
        """What each signal added, by name; hundreds of pieces are found, and few ask for it."""
        return dict(zip(self.names, self.added, strict=True))


@dataclass(frozen=True, slots=True)
class Excerpts:
    """What was found.

    Args:
        pieces: best first.
        sessions: number of each piece's session among all `session_count` that the user has with
            the agent, by id, in order of time.
        searched: how many messages were looked at.
        left_out: whether there are older ones.

    """

    pieces: Sequence[FoundPiece] = ()
    sessions: Mapping[str, int] = field(default_factory=dict)
    session_count: int = 0
    searched: int = 0
    left_out: bool = False
