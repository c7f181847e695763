"""What the Chinese clause behind a statement makes of it: 我不喝酒，除非过年."""

from dataclasses import replace
from typing import Final

from app.language.keyless.chinese_doubts import thwarts
from app.language.keyless.chinese_telling import third_person
from app.language.keyless.chinese_words import simplified
from app.language.keyless.patterns import exact
from app.language.keyless.statements import Statement

_EXCEPT: Final = exact(
    r"除非|除了(?!这|那|此)|[^，]{1,10}(?:除外|例外|不算)$|(?:但|不过)?只有[^，]{1,10}(?:才|可以|能)"
)
_IF: Final = exact(r"(?:前提是|如果|假如|要是|只要|就看|看|取决于)(?!你|了|书|到)\S")
_PLANNED: Final = {"goal", "decision"}


def with_condition(statement: Statement, following: str) -> Statement | None:
    """The statement with the exception behind it; None if it is a plan that hangs on something."""
    folded = simplified(following)
    if statement.memory_type == "goal" and thwarts(folded):
        return None
    if statement.memory_type in _PLANNED and _IF.match(folded):
        return None
    if statement.memory_type in {"fact", "event"} or not _EXCEPT.match(folded):
        return statement
    return replace(
        statement, content=f"{statement.content}，{third_person(following, subject=False)}"
    )
