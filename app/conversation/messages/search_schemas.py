"""How messages are searched over HTTP, what is found, and how a long one is read on."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field

from app.conversation.messages.capture import said_text
from app.conversation.messages.schemas import MessageRead
from app.language.ranking.boosts import BoostWeights, Mode, Query
from app.platform.values.fields import OwnId, ReadSchema, Schema, Storable, Timestamp, example
from app.platform.values.pagination import CursorText, MaxTokens

FoundRole = Literal["user", "assistant", "system", "tool"]


class MessageSearch(Schema):
    model_config = example(query="When did she move to Munich?", user_id="ana", limit=5)

    query: Annotated[Query, Storable] = Field(examples=["When did she move to Munich?"])
    session_id: OwnId | None = None
    user_id: OwnId | None = Field(default=None, description="All sessions of this user.")
    agent_id: OwnId | None = Field(
        default=None, description="All sessions with this agent. Of several ids all must fit."
    )
    roles: list[FoundRole] = Field(
        default=["user", "assistant"],
        min_length=1,
        max_length=4,
        description="Who said it; `tool` for results of tools. Calls of tools and hidden messages "
        "are never found.",
    )
    since: Timestamp | None = Field(default=None, description="Said from then on, see `said_at`.")
    until: Timestamp | None = Field(default=None, description="Said before then.")
    mode: Mode = Field(
        default="hybrid",
        description="`hybrid`: words, vectors and context. `semantic`: vectors alone. "
        "`lexical`: words alone, and nothing that has none of them.",
    )
    threshold: Annotated[float, Field(ge=0.0, le=1.0)] | None = Field(
        default=None,
        description="Leave out what has a lower `similarity`, in lexical mode a lower "
        "`lexical` score; inclusive.",
    )
    limit: Annotated[int, Field(ge=1, le=100)] = 100
    cursor: CursorText | None = None
    max_tokens: MaxTokens | None = None
    reference_time: Timestamp | None = Field(
        default=None,
        description="When the query is asked, for `yesterday` and the like and for how long ago "
        "a message was; now when left out.",
    )
    boosts: BoostWeights | None = None
    explain: bool = False


class MessageScoreExplained(ReadSchema):
    """How a message came to its place."""

    cosine: float | None = Field(description="Of query and message, 0 to 1, where compared.")
    lexical: float | None = Field(
        description="How well its words fit, 0 to 1; null in semantic mode."
    )
    fused: float = Field(description="Words, vectors and context together, 0 to 1.")
    boosts: dict[str, float] = Field(
        description="What each signal added to the message as a whole, in hybrid mode, before the "
        "sum was scaled to 0 to 1."
    )
    pieces: dict[str, float] | None = Field(
        description="What each signal of its best piece added to the sum that the hits are ordered "
        "by, of the best 150 hits in hybrid mode; null where the whole message decided, as where "
        "the query names who speaks."
    )


class HitPiece(ReadSchema):
    """The piece of a long message that fits the query best."""

    number: int = Field(description="In the message, from 0.")
    of: int = Field(description="How many pieces the message has.")
    text: str = Field(
        description="The piece with the one before and the one after it; … where others are left "
        "out."
    )
    similarity: float | None = Field(
        description="Cosine of query and piece, 0 to 1, where compared."
    )


class MessageHit(MessageRead):
    content_parts: list[dict[str, Any]] | None = Field(
        description="As they were appended, but for images, audio and files with their data: these "
        "are named by a text part such as `[image, png, 312 kB, message msg_1]`."
    )
    score: float = Field(description="0 to 1: what the hits are ordered by; the relevance.")
    relevance: float = Field(
        description="0 to 1: the cosine in semantic mode, the lexical score in lexical mode, and "
        "in hybrid mode both with what the context adds, relative to the rest of this search."
    )
    similarity: float | None = Field(
        description="Cosine of query and message, 0 to 1; null in lexical mode, and for a message "
        "without a vector."
    )
    lexical: float | None = Field(
        description="How well its words fit, 0 to 1; null in semantic mode."
    )
    said_at: Timestamp = Field(
        description="`metadata.client_time` where that is an ISO 8601 time, else `create_time`."
    )
    said_ago: str = Field(
        description="How long that was before `reference_time`, in words.", examples=["3 days ago"]
    )
    said_ago_seconds: int = Field(description="The same; negative for what is to come.")
    piece: HitPiece | None = Field(
        description="Which piece of the message fits best, of the best 150 hits in hybrid mode; "
        "null for a message of one piece."
    )
    explain: MessageScoreExplained | None = None


class MessageSearchAnswer(ReadSchema):
    items: list[MessageHit] = Field(description="Best first.")
    next_cursor: str | None = Field(
        description="For the hits after these, with everything else of the request unchanged. "
        "What is said meanwhile is not among them."
    )
    embedding_models: list[str] = Field(description="What embedded the query.")
    waiting: int = Field(
        description="Messages that could not be compared by meaning: not embedded yet, or by a "
        "model that did not answer. 0 in lexical mode."
    )
    searched: int = Field(
        description="How many messages were searched: at most the newest 20,000 of the named "
        "users, agents or sessions that match `roles`, `since` and `until`."
    )
    left_out: bool = Field(description="Whether there are older messages that were not searched.")
    degraded: bool = Field(
        description="Whether an embedder did not answer, so that words and context decided."
    )
    mode: Mode


MOST_CHARACTERS: Final = 100_000_000
"""No text is as long as this; a limit for the sake of the number."""

Offset = Annotated[int, Field(ge=0, le=MOST_CHARACTERS)]


class MessageSliceQuery(Schema):
    """Which characters of a message's text are wanted."""

    offset: Offset = Field(default=0, description="Begin behind so many characters of its text.")
    limit: Annotated[int, Field(ge=1, le=MOST_CHARACTERS)] | None = Field(
        default=None, description="At most so many characters; to the end when left out."
    )


class MessageSlice(MessageRead):
    """A message, or a stretch of its text.

    With `offset` or `limit`, `content` is that stretch of all the text, that of its parts
    included, and `content_parts` has only those that are no text.
    """

    offset: int = Field(description="Where `content` begins in the text.")
    total_length: int = Field(description="Characters of the whole text.")
    next_offset: int | None = Field(description="Where to read on; null at the end.")

    @classmethod
    def of(cls, message: MessageRead, query: MessageSliceQuery) -> Self:
        """What a query asks for; behind the end of the text its content is empty."""
        text = said_text(message.content, message.content_parts)
        fields = message.model_dump(by_alias=False)
        end = len(text)
        if query.offset or query.limit is not None:
            end = min(query.offset + (query.limit or len(text)), len(text))
            fields |= {
                "content": text[query.offset : end],
                "content_parts": [
                    part for part in message.content_parts or () if not said_text("", [part])
                ]
                or None,
            }
        return cls(
            **fields,
            offset=query.offset,
            total_length=len(text),
            next_offset=end if end < len(text) else None,
        )
