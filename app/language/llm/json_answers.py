"""The JSON object in what a model wrote, whatever stands around it.

Models wrap it in prose, fences and thoughts, forget quotes and leave commas. `json-repair`
mends that, and goes on where it should stop: it closes what was cut off, and of 1,500 objects
in single quotes with apostrophes it shortened sentences in 421. Half a statement is a wrong
memory, so what is mended counts only when it ends by itself and no letter of it is lost.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from app.language.llm.chat import JsonSchema

# 4,000 tokens are some 16,000 letters.
LONGEST: Final = 32_000

# Mending takes the square of the length: 1.5 s for the worst text of this one, 11 s for 32,000.
_LONGEST_MENDED: Final = 12_000

_THOUGHTS: Final = re.compile(
    r"\s*<(?P<tag>think|thinking|thought|reasoning)>(?:.*?</(?P=tag)>|.*)",
    re.DOTALL | re.IGNORECASE,
)
# Some servers cut the opening tag off with the template.
_REST_OF_THOUGHTS: Final = re.compile(r"[^{\[]*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"\s*```\w*\s*\n(?P<inside>.*)\n\s*```\s*", re.DOTALL)
_BETWEEN: Final = re.compile(r"[\s,]*")
_OPENING: Final = re.compile(r"\{")
# Each costs up to a millisecond.
_MOST_OPENINGS: Final = 200
_CONTAINER: Final = re.compile(r"[{\[].*[}\]]", re.DOTALL)

_END: Final = "end_of_answer"

# What holds an object together, inside of a text: it was read past its end.
_LEFT_OVER: Final = re.compile(r"""["'“”‘’]\s*[,:}\]]|[\[{,:]\s*["'“”‘’]""")
_ESCAPED: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_LITERALS: Final = re.compile(r"\b(?:none|null|true|false|nan|infinity)\b")


def read_answer(text: str, schema: JsonSchema) -> dict[str, Any] | None:
    """The answer in `text`, or None when there is none, or none that is complete.

    Of several objects the last one that is an answer counts: models draft, then decide. A
    bare list stands for the list in an answer that has only one. Values are not checked.
    May take a second or two of a text that is broken on purpose, so it belongs in a thread.
    """
    if len(text) > LONGEST:
        return None
    bare = _without_wrapping(text)
    for candidate in (text, bare):
        try:
            values = _read(candidate)
        except (ValueError, RecursionError):
            continue
        return _answer_in(values, schema) or _listed(values, schema)
    answer = _answer_in(_embedded(bare, schema), schema)
    if answer is not None:
        return answer
    values = _mended(bare)
    # No entries one after another here: of two alike, the library keeps the second.
    alone = values if len(values) == 1 and isinstance(values[0], list) else []
    answer = _answer_in(values, schema) or _listed(alone, schema)
    return answer if answer is not None and _fits(answer, schema) else None


def _without_wrapping(text: str) -> str:
    while thoughts := _THOUGHTS.match(text):
        text = text[thoughts.end() :]
    if rest := _REST_OF_THOUGHTS.match(text):
        text = text[rest.end() :]
    fenced = _FENCE.fullmatch(text)
    return (fenced["inside"] if fenced else text).strip()


def _read(text: str) -> list[Any]:
    """The values of a text that holds nothing else. Raises ValueError."""
    decoder = json.JSONDecoder()
    values = []
    position = _skip(text, 0)
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        values.append(value)
        position = _skip(text, position)
    return values


def _skip(text: str, position: int) -> int:
    between = _BETWEEN.match(text, position)
    return between.end() if between else position


def _embedded(text: str, schema: JsonSchema) -> list[Any]:
    """The whole answers among other words; none when a piece of one stands there, too."""
    decoder = json.JSONDecoder()
    needed = _needed(schema)
    values = []
    rest = []
    position = 0
    for _ in range(_MOST_OPENINGS):
        opening = _OPENING.search(text, position)
        if opening is None:
            break
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            value, end = None, opening.end()
        if isinstance(value, dict) and needed <= value.keys():
            values.append(value)
            rest.append(text[position : opening.start()])
        else:
            rest.append(text[position:end])
        position = end
    rest.append(text[position:])
    piece = re.compile(rf"""["'“”]({"|".join(needed)})["'“”]""")
    return [] if any(piece.search(words) for words in rest) else values


def _mended(text: str) -> list[Any]:
    """The values in `text` at its top level; none when the last does not end, or words went."""
    import json_repair

    if len(text) > _LONGEST_MENDED:
        return []
    try:
        found = json_repair.loads(f'{text}\n{{"{_END}": true}}', skip_json_loads=True)
    except (ValueError, RecursionError):
        return []
    # Whatever was open when the text ended has swallowed the mark.
    if not isinstance(found, list) or not found or found[-1] != {_END: True}:
        return []
    values = found[:-1]
    container = _CONTAINER.search(text)
    written = json.dumps(values, ensure_ascii=False)
    if container is None or _letters(container[0]) != _letters(written):
        return []
    return values


def _letters(text: str) -> str:
    plain = _LITERALS.sub("", _ESCAPED.sub(" ", text.lower()))
    return "".join(filter(str.isalpha, plain))


def _fits(value: Any, schema: JsonSchema) -> bool:
    """Whether a mended value has no member too many, and no text that runs on into the next."""
    if "anyOf" in schema:
        return any(_fits(value, choice) for choice in schema["anyOf"])
    if isinstance(value, str):
        return _LEFT_OVER.search(value) is None
    if isinstance(value, list):
        return all(_fits(item, schema.get("items", {})) for item in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return all(name in known and _fits(member, known[name]) for name, member in value.items())
    return True


def _needed(schema: JsonSchema) -> set[str]:
    """Members without which it is no answer: no remarks, and nothing that may be null, unless an
    object that may be null is all that is asked for.
    """
    choices = {
        name: [choice["type"] for choice in form.get("anyOf", [form])]
        for name, form in schema["properties"].items()
    }
    needed = {
        name for name, forms in choices.items() if forms != ["string"] and "null" not in forms
    }
    return needed or {name for name, forms in choices.items() if "object" in forms}


def _answer_in(values: list[Any], schema: JsonSchema) -> dict[str, Any] | None:
    needed = _needed(schema)
    answers = [value for value in _objects(values) if needed <= value.keys()]
    return answers[-1] if answers else None


def _objects(values: list[Any]) -> Iterator[dict[str, Any]]:
    for value in values:
        # An answer may also come as a list of one.
        only = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(only, dict):
            yield only


def _listed(values: list[Any], schema: JsonSchema) -> dict[str, Any] | None:
    """An answer made of its entries, written as a list or one after another."""
    lists = [name for name in _needed(schema) if "items" in schema["properties"][name]]
    if len(lists) != 1:
        return None
    [name] = lists
    keys = schema["properties"][name]["items"]["properties"].keys()
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
        if not values:
            return {name: []}
    if values and all(isinstance(value, dict) and value.keys() & keys for value in values):
        return {name: values}
    return None
