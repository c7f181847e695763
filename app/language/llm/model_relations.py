"""The relations of one entry of a model's answer, made strict, one by one.

One that cannot be kept is left out and told of; neither the entry nor its others suffer. Pure.
"""

import re
from typing import Any, Final
from unicodedata import combining, normalize

from app.language.llm.embeddings import encodable
from app.language.llm.extraction import MOST_RELATIONS, ProposedRelation

LONGEST_NAME: Final = 255
_LONGEST_TYPE: Final = 50
_LONGEST_RELATION: Final = 100
_ANYTHING: Final = "thing"

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN: Final = re.compile(r"[\s_./-]+")
_SNAKE: Final = re.compile(r"[a-z][a-z0-9_]*")


class MalformedRelationError(ValueError):
    """The message names members, never their values."""


def read_relations(value: Any) -> tuple[tuple[ProposedRelation, ...], list[str]]:
    """The relations of an entry, each once, and what was wrong with the others.

    An entry without the member has none: an endpoint that knows no schema may leave it out.
    """
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), ["relations: no list"]
    found: dict[ProposedRelation, None] = {}
    faults: list[str] = []
    for number, one in enumerate(value[:MOST_RELATIONS], 1):
        try:
            found[_relation(one)] = None
        except MalformedRelationError as error:
            faults.append(f"relation {number} unusable: {error}")
    surplus = len(value) - MOST_RELATIONS
    if surplus > 0:
        faults.append(f"{surplus} relations beyond the {MOST_RELATIONS} that are read")
    return tuple(found), faults


def snake(text: str) -> str | None:
    """Words as lower snake_case in ASCII, or None where they are no Latin text."""
    plain = "".join(sign for sign in normalize("NFKD", text) if not combining(sign))
    name = _BETWEEN.sub("_", _HUMP.sub("_", plain.strip())).strip("_").lower()
    return name if _SNAKE.fullmatch(name) else None


def _relation(value: Any) -> ProposedRelation:
    if not isinstance(value, dict):
        raise MalformedRelationError("not an object")
    wanting = [name for name in ("source", "destination") if _name(value.get(name)) is None]
    said = value.get("relation")
    relation = snake(said) if isinstance(said, str) else None
    if relation is None or len(relation) > _LONGEST_RELATION:
        wanting.append("relation")
    source, destination = _name(value.get("source")), _name(value.get("destination"))
    if wanting or relation is None or source is None or destination is None:
        raise MalformedRelationError(", ".join(wanting))
    if source == destination:
        raise MalformedRelationError("it joins a name with itself")
    return ProposedRelation(
        source,
        relation,
        destination,
        _type(value.get("source_type")),
        _type(value.get("destination_type")),
    )


def _name(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = " ".join(encodable(value.replace("\x00", "")).split())
    return text if 0 < len(text) <= LONGEST_NAME else None


def _type(value: Any) -> str:
    """One word; the names count, so an unusable type is any thing."""
    name = snake(value) if isinstance(value, str) else None
    return name if name is not None and len(name) <= _LONGEST_TYPE else _ANYTHING
