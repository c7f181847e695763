"""What searches read of a message: its words, who said it and when, and its vector.

Searched is what was said, without the blocks that a middleware put into it; results of tools only
where a search asks for them. Calls of tools and hidden messages are never found: they are marked as
read and have no terms.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from app.conversation.messages.capture import (
    Said,
    client_time,
    has_data,
    is_hidden,
    readable_text,
    searched_text,
)
from app.identity.agents.embedders import Embedders, embed
from app.identity.tenants.access import Principal
from app.language.llm.embedder import Embedder
from app.language.ranking.packing import INDEX_COLUMNS, index_values, stored_terms
from app.language.text.conversation_questions import states_wish
from app.language.text.pieces import piece_ends, piece_texts
from app.language.text.terms import ANALYSER_VERSION, terms
from app.platform.values.fields import in_utc

SPEAKER_KEYS: Final = ("name", "speaker")
"""Keys of the metadata that may say who speaks, beside the message's own `name`."""

INDEXED_LENGTH: Final = 50_000
"""Code points of a message that are searched by words."""

EMBEDDED_LENGTH: Final = 4_000
"""Code points that a vector is made of: a vector of more says nothing any more, and providers
take some 8,000 tokens."""

INDEXED_AT_ONCE: Final = 40_000
"""Code points of a batch that are read before it is stored, some 0.1 s of work; what is over is
left to a job."""

PIECE_COLUMNS: Final = (
    "piece_ends", "piece_terms", "piece_term_counts", "states_wish", "searched_text",
)  # fmt: skip

NEVER_FOUND: Final[Mapping[str, Any]] = {
    **dict.fromkeys((*INDEX_COLUMNS, *PIECE_COLUMNS)),
    "analyser": ANALYSER_VERSION,
    "said_at": None,
    "embedding": None,
    "piece_embeddings": None,
    "embedding_model": None,
}

NOT_READ: Final[Mapping[str, Any]] = {**NEVER_FOUND, "analyser": None}


def searchable_text(message: Said, tags: Collection[str]) -> str | None:
    """What of a message is searched, from its beginning; None when nothing is.

    Args:
        tags: blocks of these are taken out.

    """
    if message.tool_calls or is_hidden(message):
        return None
    text = searched_text(message.content, message.content_parts, tags)
    return text[:INDEXED_LENGTH] or None


def words_of(message: Said, text: str | None, ends: Sequence[int] = ()) -> dict[str, Any]:
    """The values of the columns that searches by words read.

    Args:
        text: as `searchable_text` gives it.
        ends: of its pieces, where they are known.

    """
    said_at = client_time(message.metadata)
    stored = None if said_at is None else in_utc(said_at)
    if text is None:
        return {**NEVER_FOUND, "said_at": stored}
    names = (message.name, *(message.metadata.get(key) for key in SPEAKER_KEYS))
    speakers = [name for name in names if isinstance(name, str) and name.strip()]
    ends = ends or piece_ends(text)
    pieces = [terms(piece) for piece in piece_texts(text, ends)]
    # The day that the speaker called it.
    day = said_at or message.create_time
    words = chain.from_iterable(pieces)
    read = index_values(text, speakers=speakers, said_at=day, words=words)
    # Of an assistant it is no wish of the user's, and replies are long.
    wish = {"states_wish": message.role == "user" and states_wish(text)}
    own = {"searched_text": text if has_data(message.content, message.content_parts) else None}
    return {**NEVER_FOUND, **read, **wish, **own, **_of_pieces(ends, pieces), "said_at": stored}


def _of_pieces(ends: Sequence[int], pieces: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The values of `PIECE_COLUMNS`; none for a text of one piece, which is itself that piece."""
    if len(ends) == 1:
        return {}
    kept = [stored_terms(piece) for piece in pieces]
    return {
        "piece_ends": list(ends),
        "piece_terms": [piece.vector for piece in kept],
        "piece_term_counts": [piece.count for piece in kept],
    }


def embedded_texts(text: str, ends: Sequence[int]) -> list[str]:
    """What vectors are made of: the text, and each of its pieces where it has several."""
    pieces = piece_texts(text, ends) if len(ends) > 1 else []
    return [text[:EMBEDDED_LENGTH], *pieces]


def vector_columns(vectors: Sequence[Any]) -> dict[str, Any]:
    """The columns of vectors that were made of `embedded_texts`."""
    return {"embedding": vectors[0], "piece_embeddings": list(vectors[1:]) or None}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is known of a batch before it is stored.

    Args:
        columns: values for the rows, by place in the batch; what is missing is left to a job.
        model: what made the vectors; None when nothing was embedded.
        vectors: of the texts of those that may be found (`embedded_texts`), by place.

    """

    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    model: str | None = None
    vectors: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def of(self, place: int, *, embedded: bool) -> dict[str, Any]:
        """Values for the row of one message.

        Args:
            embedded: whether the model is the one in force for the message's agent.

        """
        row = dict(self.columns.get(str(place), NOT_READ))
        if embedded and str(place) in self.vectors:
            row |= vector_columns(self.vectors[str(place)]) | {"embedding_model": self.model}
        return row


def is_unfinished(row: Mapping[str, Any]) -> bool:
    """Whether something is left to do for a message that is about to be stored so."""
    unread = row["analyser"] is None
    return unread or (row["terms"] is not None and row["embedding_model"] is None)


IndexedTexts = tuple[dict[str, list[str]], dict[str, dict[str, Any]]]
"""By id, what to embed of the messages that may be found, and the columns of all."""


class Indexer:
    """Reads messages for searches; no transaction may be open meanwhile."""

    def __init__(self, embedders: Embedders, tags: Sequence[str]) -> None:
        """Prepare for blocks of `tags`, which a middleware put into messages."""
        self._embedders = embedders
        self._tags = tags

    def read_first(self, batch: Sequence[Said]) -> IndexedTexts:
        """As `read`, of the first messages of a batch; a job reads the others."""
        now, characters = [], 0
        for message in batch:
            characters += len(readable_text(message.content, message.content_parts))
            if characters <= INDEXED_AT_ONCE:
                now.append(message)
        return self.read(now)

    async def prepared(self, principal: Principal, read: IndexedTexts) -> Prepared:
        """What was read, embedded where that takes no call of a provider.

        Args:
            read: of messages that have their place in the batch as `message_id`.

        """
        texts, columns = read
        embedder = await self._embedders.at_hand(principal)
        if embedder is None or not texts:
            return Prepared(columns)
        return Prepared(columns, embedder.name, await embed_each(embedder, texts))

    def read(self, messages: Sequence[Said]) -> IndexedTexts:
        """By id: what to embed of the messages that may be found, and the columns of all.

        Takes time in proportion to the text.
        """
        texts, columns = {}, {}
        for message in messages:
            text = searchable_text(message, self._tags)
            ends = () if text is None else piece_ends(text)
            columns[message.message_id] = words_of(message, text, ends)
            if text is not None:
                texts[message.message_id] = embedded_texts(text, ends)
        return texts, columns

    def texts(self, messages: Sequence[Said]) -> dict[str, list[str]]:
        """The first half of `read`, at a fraction of its cost."""
        found = {message.message_id: searchable_text(message, self._tags) for message in messages}
        return {
            message_id: embedded_texts(text, piece_ends(text))
            for message_id, text in found.items()
            if text is not None
        }


async def embed_each(
    embedder: Embedder, texts: Mapping[str, Sequence[str]]
) -> dict[str, list[Any]]:
    """The vectors of several texts by id, in one call of the embedder.

    Raises:
        EmbeddingUnavailableError: no embedder answers; safe to retry.

    """
    made = iter(await embed(embedder, list(chain.from_iterable(texts.values()))))
    return {key: [next(made) for _ in each] for key, each in texts.items()}
