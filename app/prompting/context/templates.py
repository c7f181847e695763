"""Variables of a system prompt (`{{ plan }}`, `{{ user.city }}`), and what can go wrong with a
request for a context.

A value may be text of a user, so it is escaped like everything remembered, and is never itself read
for variables.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.conversation.messages.schemas import CONTENT_LENGTH
from app.errors import UnprocessableError
from app.language.text.prompt_text import escape_line

MOST_NAMED: Final = 5
LONGEST_NAMED: Final = 100
"""Limits of the names in an error: a prompt may hold thousands of any length."""


class UnknownVariableError(UnprocessableError):
    code = "unknown_variable"
    title = "Nothing has this name"

    def __init__(self, names: Sequence[str]) -> None:
        shown = [name[:LONGEST_NAMED] for name in names[:MOST_NAMED]]
        more = len(names) - len(shown)
        listed = ", ".join(shown) + (f" and {more} more" if more else "")
        super().__init__(
            f"The system prompt names {listed}, and neither the request's `context`, nor the "
            "working state, nor the session's `context` has it.",
            variables=[*shown],
            errors=[
                {"location": ["body", "system_prompt"], "detail": f"nothing is called {name}"}
                for name in shown
            ],
        )


class LongPromptError(UnprocessableError):
    code = "prompt_too_long"
    title = "System prompt too long"

    def __init__(self) -> None:
        detail = f"is longer than {CONTENT_LENGTH:,} characters once its variables are replaced"
        super().__init__(
            f"The system prompt {detail}: take out a variable that stands for much text.",
            errors=[{"location": ["body", "system_prompt"], "detail": detail}],
        )


_VARIABLE: Final = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.\w+)*)\s*\}\}")
_MISSING: Final = object()


def fill(template: str, sources: Sequence[Mapping[str, Any]]) -> str:
    """The template with every variable replaced; other braces stay as they are.

    Args:
        template: the caller's text, which is not escaped.
        sources: where a name is looked up; the first source that has it counts.

    Raises:
        UnknownVariableError: no source has a name; the error lists some of them.
        LongPromptError: the result would be longer than a message may be.

    """
    names = dict.fromkeys(_VARIABLE.findall(template))
    values = {name: _found(name, sources) for name in names}
    unknown = [name for name, value in values.items() if value is _MISSING]
    if unknown:
        raise UnknownVariableError(unknown)
    shown = _all_shown(template, names, values)
    return _VARIABLE.sub(lambda match: shown[match[1]], template)


def _all_shown(
    template: str, names: Mapping[str, None], values: Mapping[str, Any]
) -> dict[str, str]:
    """What each name is replaced by, made once, as long as all together are not too long.

    Raises LongPromptError.
    """
    times = Counter(match[1] for match in _VARIABLE.finditer(template))
    length = len(_VARIABLE.sub("", template))
    if length > CONTENT_LENGTH:
        raise LongPromptError
    shown = {}
    for name in names:
        shown[name] = _shown(values[name])
        length += times[name] * len(shown[name])
        if length > CONTENT_LENGTH:
            raise LongPromptError
    return shown


def _found(name: str, sources: Sequence[Mapping[str, Any]]) -> Any:
    path = name.split(".")
    for source in sources:
        value: Any = source
        for step in path:
            if isinstance(value, Mapping) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            else:
                value = _MISSING
                break
        if value is not _MISSING:
            return value
    return _MISSING


def _shown(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return escape_line(text)
