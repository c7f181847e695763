"""The summariser that asks a model: any that can be chatted with."""

from collections.abc import Sequence
from typing import Final

from app.language.llm.chat import ChatAnswer, ChatModel, JsonSchema
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extraction import ModelUse
from app.language.llm.prompt_lines import cut, line
from app.language.llm.summarising import Line, Summary, SummaryRequest
from app.language.llm.summary_prompts import (
    ACKNOWLEDGEMENT,
    ANNOUNCEMENT,
    INSTRUCTIONS,
    summary_prompt,
)
from app.language.text.normal_forms import normalise

TRIES: Final = 3
"""Of an answer that cannot be used (C-70); what does not arrive at all the client repeats."""

CHARACTERS: Final = 50_000
"""Of messages that are shown at most; longer ones are cut, and none is left out (C-57, C-68)."""

SHORTEST: Final = 120
"""So much is left of each message, whatever the others need."""

_AGAIN: Final = frozenset({"empty", "unreadable", "truncated"})
_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {"summary": {"type": ["string", "null"]}},
    "required": ["summary"],
    "additionalProperties": False,
}
# Of shorter ones any may be a summary, too.
_PIECE: Final = 25
_OURS: Final = tuple(normalise(text) for text in INSTRUCTIONS)


class ModelSummariser:
    """Asks one chat model. Without a state of its own, so calls may overlap."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def model(self) -> str:
        return self._chat.model

    async def summarise(self, request: SummaryRequest) -> Summary:
        """As the port says; an answer without a summary in it is asked for again."""
        system = summary_prompt(
            words=request.words, fold=not request.lines, wishes=request.instructions
        )
        spent = ModelUse()
        for left in reversed(range(TRIES)):
            try:
                answer = await self._ask(system, rendered(request), request.words)
            except ModelUnavailableError as error:
                error.use = spent = _sum(spent, error.use)
                if error.fault not in _AGAIN or not left:
                    raise
                continue
            spent = _sum(spent, answer.use)
            text = answer.data["summary"]
            if isinstance(text, str) and text.strip() and not _is_ours(text):
                return Summary(text.strip(), spent)
        raise ModelUnavailableError("bad_answer", fault="empty", use=spent)

    async def _ask(self, system: str, data: str, words: int) -> ChatAnswer:
        return await self._chat.answer(
            system,
            data,
            opening=(ANNOUNCEMENT, ACKNOWLEDGEMENT),
            schema=_SCHEMA,
            schema_name="summary",
            # Room for a script of which a word takes some tokens, and for one that is too long.
            max_output_tokens=400 + 6 * words,
        )


def rendered(request: SummaryRequest) -> str:
    """The request's data, one object per line: first what was summarised before."""
    longest = allowance([len(one.text) for one in request.lines])
    return "\n".join(
        [line(kind="summary", text=text) for text in request.earlier]
        + [_message(one, longest) for one in request.lines]
    )


def allowance(lengths: Sequence[int], *, most: int = CHARACTERS) -> int:
    """The length to cut texts to, so that together they are not longer than `most`.

    Only the longest ones are cut, and none below SHORTEST.
    """
    left, longest = most, 0
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return max(share, SHORTEST)
        left -= length
        longest = length
    return max(longest, SHORTEST)


def _message(one: Line, longest: int) -> str:
    return line(
        kind="message",
        role=one.speaker,
        event=one.event_type,
        name=one.name,
        calls=list(one.calls),
        text=cut(one.text, longest),
    )


def _is_ours(text: str) -> bool:
    """Whether it is a piece of our own instructions, and no summary."""
    words = normalise(text)
    return len(words) >= _PIECE and any(words in ours for ours in _OURS)


def _sum(one: ModelUse, other: ModelUse) -> ModelUse:
    return ModelUse(
        one.calls + other.calls,
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.latency_ms + other.latency_ms,
    )
