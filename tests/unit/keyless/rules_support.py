"""Conversations as an extractor sees them, in one line each."""

from datetime import UTC, datetime

from app.language.keyless.extractor import propose
from app.language.llm.extractor import ConversationTurn, ExtractionRequest, Proposed

SAID_AT = datetime(2026, 3, 14, 10, tzinfo=UTC)


def request(*turns: str, said_at: datetime = SAID_AT, **more: object) -> ExtractionRequest:
    """Turns of the user; those that begin with "A: " are the assistant's, "C: " context."""
    read = []
    for number, text in enumerate(turns, start=1):
        role, content = ("assistant", text[3:]) if text.startswith("A: ") else ("user", text)
        context = content.startswith("C: ")
        content = content.removeprefix("C: ")
        read.append(ConversationTurn(f"msg_{number}", role, content, said_at, context=context))
    return ExtractionRequest(turns=read, **more)


def proposed(*turns: str, **more: object) -> list[Proposed]:
    return propose(request(*turns, **more))


def said(*turns: str, **more: object) -> list[tuple[str, str]]:
    """Type and content of each proposal."""
    return [(each.memory_type, each.content) for each in proposed(*turns, **more)]
