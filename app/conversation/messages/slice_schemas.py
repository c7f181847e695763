"""A stretch of a message's text, as it crosses HTTP: how a long one is read on."""

from typing import Annotated, Final, Self

from pydantic import Field

from app.conversation.messages.capture import said_text
from app.conversation.messages.schemas import MessageRead
from app.platform.values.fields import Schema

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
