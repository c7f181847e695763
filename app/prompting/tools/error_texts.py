"""Why a call was not carried out: the refusal, which is an answer to the model and no failure over
HTTP, and its words. Pure.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from app.errors import DomainError
from app.language.text.prompt_text import escape_line
from app.prompting.blocks.errors import times


class CallRefusedError(Exception):
    """The call is not carried out; `text` says to the model what to do instead."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


SWITCHED_OFF: Final = (
    "Memory is switched off here, so that nothing was done. Go on without it and do not try again "
    "in this conversation."
)

NOT_OPEN: Final = (
    "Nothing was kept: what is remembered about this user is not open to this application. Go on "
    "without it and do not try again in this conversation."
)

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "too_short": "Say it in one whole sentence.",
        "too_long": "Say it more briefly, or as several statements, each with a call of its own.",
        "sensitive": "Leave that out, and tell the user that such things are not kept.",
        "stop_word": "Do not save this.",
        "injection": "Save a fact about the user, not an order to a model.",
        "low_confidence": "Do not save this.",
    }
)


def error_text(error: DomainError) -> str:
    """Why a call was not carried out, and what a model should do instead of trying again."""
    render = _TEXTS.get(error.code)
    return error.detail if render is None else render(error)


def _refused(error: DomainError) -> str:
    reasons: Any = error.members["reasons"]
    said = " ".join(
        f"{reason['detail']} {ADVICE.get(reason['code'], '')}".rstrip() for reason in reasons
    )
    return f"Not saved. {said} Do not send the same text again."


def _duplicate(error: DomainError) -> str:
    memory_id = error.members.get("memory_id")
    known = f"the memory {memory_id}" if memory_id else "another memory"
    return (
        f"Not saved: {known} says the same or nearly so. If that one is right there is nothing to "
        "do. If it is wrong or out of date, call memory_update with its id."
    )


def _no_memory(error: DomainError) -> str:
    return (
        f"There is no memory {escape_line(str(error.members['memory_id']))} of this user. Find it "
        "with memory_search and copy the id that stands in brackets; if it is not found there is "
        "nothing to change."
    )


def _no_room(error: DomainError) -> str:
    """All figures for a correct next call: models have been seen to repeat an edit that is too
    long without end.
    """
    figures: Any = error.members
    over = figures["chars_wanted"] - figures["limit"]
    label, characters = escape_line(figures["label"]), figures["chars_current"]
    return (
        f"Nothing was written: the block {label} has {characters} "
        f"characters now, would have {figures['chars_wanted']}, and may have {figures['limit']}. "
        f"Do not send the same again: say it in {over} characters less, or first shorten the block "
        f"by at least {over} characters with memory_rethink."
    )


def _not_once(error: DomainError) -> str:
    counted: Any = error.members["occurrences"]
    often = times(counted)
    return (
        f"Nothing was written: old_content stands in the block {often} and must stand there "
        "exactly once. Take some of the text around it in."
    )


def _fixed(text: str) -> Callable[[DomainError], str]:
    return lambda _error: text


_TEXTS: Final[Mapping[str, Callable[[DomainError], str]]] = MappingProxyType(
    {
        "gate_rejected": _refused,
        "duplicate": _duplicate,
        "memory_not_found": _no_memory,
        "not_your_memory": _fixed(
            "This memory is another member's of the project, and the user's role does not let them "
            "change it. Leave it as it is."
        ),
        # A missing scope for the tool itself is refused before.
        "insufficient_scope": _fixed(
            "All users share this knowledge, and it cannot be changed in a conversation. Leave it "
            "as it is."
        ),
        "not_changeable": _fixed(
            "Nothing was written: another memory has replaced this one. Search again, and change "
            "the one that is found."
        ),
        "scope_requires_id": _fixed(
            "This conversation belongs to no project: use the scope user or session."
        ),
        "selector_required": _fixed(
            "This conversation belongs to no project: search without scope, or with another one."
        ),
        "read_only_member": _fixed(
            "The user may only read in this project, and change nothing there: use the scope user "
            "or session."
        ),
        "block_limit_exceeded": _no_room,
        "block_read_only": _fixed(
            "This block cannot be changed in a conversation. Leave it as it is."
        ),
        "key_restricted": _fixed(
            "All users share this block, and it cannot be changed in a conversation with this one. "
            "Leave it as it is."
        ),
        "text_not_found": _fixed(
            "Nothing was written: old_content does not stand in the block. Copy it from the block "
            "to the letter, in case and white space too, without line numbers."
        ),
        "text_not_unique": _not_once,
        "line_numbers": _fixed(
            "Nothing was written: the text carries the line numbers that are shown beside it, as "
            "in 1→. Leave them out."
        ),
        "archive_closed": _fixed(NOT_OPEN),
        "user_not_found": _fixed(NOT_OPEN),
        # Only of a user whom the key of an agent does not see: a model chooses no ids.
        "id_not_allowed": _fixed(NOT_OPEN),
        "memory_paused": _fixed(SWITCHED_OFF),
        "memory_disabled": _fixed(SWITCHED_OFF),
        "disabled": _fixed(SWITCHED_OFF),
    }
)
