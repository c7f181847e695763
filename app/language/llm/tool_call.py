"""A call of a tool, in whichever form a client appended it, and the line that stands for many of
them in a summary: how often which, where, the newest. Pure.

OpenAI has `function` with `arguments`, a text; LangChain `args` and Anthropic `input`, an object.

Without a model nobody can say in other words what a hundred results came to. Which tools were
called, with what, and the numbers of the messages say where everything is. Digests of several
summaries become one. Pure.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.language.llm.summariser import SummaryLine
from app.language.text.lazy_pattern import lazy_pattern
from app.language.text.pieces import word_count

_ARGUMENTS: Final = ("arguments", "args", "input")

DEEPEST_ARGUMENTS: Final = 100
"""Most levels of nested objects and lists. An answer is not written much deeper."""


@dataclass(frozen=True, slots=True)
class ClientToolCall:
    """A call, read from any of the forms; empty is what it does not say."""

    call_id: str
    name: str
    arguments: Any

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> "ClientToolCall":
        function = call.get("function")
        inside = function if isinstance(function, Mapping) else call
        given: Any = next((inside[key] for key in _ARGUMENTS if key in inside), {})
        name = inside.get("name")
        return cls(str(call.get("id") or ""), name if isinstance(name, str) else "", given)

    @property
    def text(self) -> str:
        """The arguments as JSON, as OpenAI wants them."""
        return arguments_text(self.arguments)

    @property
    def document(self) -> dict[str, Any]:
        """The arguments as an object, as Anthropic wants them."""
        value = self.arguments
        if isinstance(value, str):
            value = read_arguments(value) if value.strip() else {}
        return value if isinstance(value, dict) else {"arguments": value}


def arguments_text(arguments: Any) -> str:
    """Arguments as a text, whether they came as one or as an object."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def with_arguments(call: Mapping[str, Any], change: Callable[[Any], Any]) -> Mapping[str, Any]:
    """The call in its form, with its arguments changed."""
    function = call.get("function")
    if isinstance(function, Mapping):
        return {**call, "function": with_arguments(function, change)}
    return {**call, **{key: change(call[key]) for key in _ARGUMENTS if key in call}}


def read_arguments(text: str) -> Any:
    """The value that the text is in JSON, or the text itself where it is none.

    Not read are half a surrogate pair, numbers that are not finite, and what is nested too deep:
    a model may write them, and no answer in JSON can have them.
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return text
    return value if _is_flat(value) else text


def _is_flat(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST_ARGUMENTS + 1):
        level = [item for container in level for item in _inside(container)]
        if not level:
            return True
    return False


def _inside(value: Any) -> list[Any]:
    """What it contains."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


NEWEST: Final = 5
"""How many of the newest calls are shown with their arguments, as far as there is room."""

_OTHERS: Final = "…"
"""The name of all tools for which there is no room."""

_DIGEST = lazy_pattern(
    r"(?:Tool calls|工具调用)(?: ?[(（](?:messages|消息) (?P<first>\d+)–(?P<last>\d+)[)）])?[:：] ?"
    r"(?P<counts>[^;；]*?)(?:(?:; newest: |；最近：).*)?[.。]"
)
_COUNT = lazy_pattern(r"(?P<name>\S+) ×(?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class ToolCallDigest:
    """Calls of tools.

    Args:
        first, last: numbers of the messages that they are among; None where that is not known.
        counts: how often each tool was called.
        newest: the newest calls with their arguments, in order.

    """

    first: int | None
    last: int | None
    counts: Mapping[str, int]
    newest: Sequence[str] = ()

    def written(self, words: int, *, chinese: bool) -> str:
        """As a line of at most `words`, or as many as its beginning takes."""
        names = sorted(self.counts, key=lambda name: (name != _OTHERS, self.counts[name]))
        names.reverse()
        shown = _most(len(names), lambda most: self._line(names[:most], (), chinese), words)
        # Those without arguments say no more than their count.
        newest = [call for call in self.newest if "(" in call]
        calls = _most(
            len(newest),
            lambda most: self._line(names[:shown], newest[len(newest) - most :], chinese),
            words,
        )
        return self._line(names[:shown], newest[len(newest) - calls :], chinese)

    def _line(self, names: Sequence[str], newest: Sequence[str], chinese: bool) -> str:
        counts = {name: self.counts[name] for name in names}
        others = sum(self.counts.values()) - sum(counts.values())
        if others:
            counts[_OTHERS] = counts.get(_OTHERS, 0) + others
        comma = "，" if chinese else ", "
        told = comma.join(f"{name} ×{count}" for name, count in counts.items())
        span = "" if self.first is None else f"{self.first}–{self.last}"
        if chinese:
            where = f"（消息 {span}）" if span else ""
            calls = f"；最近：{'，'.join(newest)}" if newest else ""
            return f"工具调用{where}：{told}{calls}。"
        where = f" (messages {span})" if span else ""
        calls = f"; newest: {', '.join(newest)}" if newest else ""
        return f"Tool calls{where}: {told}{calls}."


def _most(count: int, written: Callable[[int], str], words: int) -> int:
    """How many of `count` can be written in so many words."""
    return next((most for most in range(count, 0, -1) if word_count(written(most)) <= words), 0)


def digest_of(lines: Iterable[SummaryLine]) -> ToolCallDigest | None:
    """The calls among the lines; None where there are none."""
    calling = [line for line in lines if line.calls]
    if not calling:
        return None
    calls = [call for line in calling for call in line.calls]
    numbers = [line.number for line in calling if line.number is not None]
    return ToolCallDigest(
        first=min(numbers, default=None),
        last=max(numbers, default=None),
        counts=Counter(_name(call) for call in calls),
        newest=calls[-NEWEST:],
    )


def _name(call: str) -> str:
    """The name of a call, as one word."""
    return "_".join(call.partition("(")[0].split()) or _OTHERS


def read_digest(line: str) -> ToolCallDigest | None:
    """What `written` has written; None for any other line. The newest calls are not read."""
    found = _DIGEST.fullmatch(line.strip())
    if found is None:
        return None
    counts: Counter[str] = Counter()
    for count in _COUNT.finditer(found["counts"].replace("，", ", ")):
        counts[count["name"]] += int(count["count"])
    if not counts:
        return None
    if found["first"] is None:
        return ToolCallDigest(None, None, counts)
    return ToolCallDigest(int(found["first"]), int(found["last"]), counts)


def joined(digests: Sequence[ToolCallDigest]) -> ToolCallDigest | None:
    """All of them as one; None for none."""
    if not digests:
        return None
    counts: Counter[str] = Counter()
    for digest in digests:
        counts.update(digest.counts)
    firsts = [digest.first for digest in digests if digest.first is not None]
    lasts = [digest.last for digest in digests if digest.last is not None]
    return ToolCallDigest(min(firsts, default=None), max(lasts, default=None), counts)
