"""Whether a model's text is a summary of what it was given: general evidence, no list of phrases.

An apology, the report of an error or an offer to help fits any conversation: hardly any of its
words are those of this one, or they stand far apart in it. A summary repeats names, numbers and
subjects, and several of those that one message has.

Measured on 24 conversations, most of them Chinese: of 13 summaries as a model writes them 12 passed
(the other is English, of a Chinese message); of 26 refusals, errors and empty phrases with each
conversation (624 pairs) 4 did, all with one conversation that was written around such phrases; of
299 summaries of another conversation none did. Pure.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from app.language.text.acknowledgements import is_trivial
from app.language.text.terms import terms
from app.language.text.word_limit import mostly_characters

LEAST_SHARE: Final = 0.3
"""Of a summary's telling terms that are also in what it summarises."""

CLOSE_SHARE: Final = 0.5
"""Of its telling terms that one message has: enough where there are few."""

TOGETHER: Final = 2
"""How many of them stand in one message; also how many there are at the least."""

LITTLE: Final = 8
"""Telling terms of a greeting and an offer to help: in English and Chinese they have 2 to 7."""

REPEATED: Final = 4
"""How many terms in a row are a piece of a prompt."""


def is_about(text: str, sources: Sequence[str], *, prompt: frozenset[str]) -> bool:
    """Whether a text says something of the messages or summaries in `sources`.

    A text in another script than theirs can only share names and numbers with them. Where the
    sources say nothing telling, any text may be about them.

    Args:
        prompt: terms of the instructions. Talking about the task says nothing of a conversation.

    """
    telling = _telling(text, prompt)
    said = [_telling(source, prompt) for source in sources]
    most = max(map(len, said), default=0)
    if not most or len(telling) < TOGETHER:
        return not most
    shared = [telling & telling_words for telling_words in said]
    everywhere = len(frozenset().union(*shared))
    if mostly_characters(text) != mostly_characters(" ".join(sources)):
        return everywhere >= TOGETHER
    closest = max(map(len, shared), default=0)
    spread_out = closest >= min(TOGETHER, most) and everywhere >= LEAST_SHARE * len(telling)
    return spread_out or closest >= CLOSE_SHARE * len(telling)


def says_little(user: Iterable[str], others: Iterable[str], *, prompt: frozenset[str]) -> bool:
    """Whether the user only greets, thanks or agrees, and nobody else says much at once."""
    return all(map(is_trivial, user)) and all(
        is_trivial(other) or len(_telling(other, prompt)) <= LITTLE for other in others
    )


def _telling(text: str, prompt: frozenset[str]) -> frozenset[str]:
    """Terms that say what a text is about; a single character is part of many words."""
    return frozenset(term for term in terms(text) if len(term) > 1) - prompt


def repeats(text: str, prompt: str) -> bool:
    """Whether half of a text or more is pieces of the prompt."""
    pieces = list(_pieces(text))
    return bool(pieces) and 2 * len(set(_pieces(prompt)).intersection(pieces)) >= len(set(pieces))


def _pieces(text: str) -> Iterable[tuple[str, ...]]:
    words = terms(text)
    return zip(*(words[start:] for start in range(REPEATED)), strict=False)
