"""What counts as found and as right when statements are a speaker's own words."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from app.language.text.normal_forms import normalise
from benchmarks.extraction_labels import Expectation

COVERED: Final = 0.8
"""Share of the words of a quote that a statement has which states it."""

OWN: Final = 0.6
"""Share of its own words that a right statement has from one quote, if it covers none."""

_TOKEN: Final = re.compile(r"[a-z0-9à-ÿ]+(?:'[a-z]+)?|[\u3400-\u9fff]")


def tokens(text: str) -> Counter[str]:
    """Words of Latin letters and characters of Chinese, in lower case."""
    return Counter(_TOKEN.findall(text.lower().replace("’", "'")))


def covers(statement: str, quote: str) -> bool:
    """Whether a statement states the fact of a quote."""
    wanted = tokens(quote)
    return (tokens(statement) & wanted).total() >= COVERED * wanted.total()


def is_right(statement: str, quotes: Sequence[str]) -> bool:
    """Whether a statement says nothing but what the quotes of its message mark as facts."""
    said = tokens(statement)
    return any(
        covers(statement, each) or (said & tokens(each)).total() >= OWN * said.total()
        for each in quotes
    )


def is_same(clause: str, other: str) -> bool:
    """Whether two clauses of a message have four fifths of their words in common."""
    one, two = tokens(clause), tokens(other)
    return (one & two).total() >= COVERED * max(one.total(), two.total(), 1)


def states(statement: str, fact: Expectation) -> bool:
    """Whether a statement has the words of a labelled fact, whatever their case."""
    content = normalise(statement)

    def has(words: str) -> bool:
        return normalise(words) in content

    return all(map(has, fact.must)) and (not fact.any_of or any(map(has, fact.any_of)))
