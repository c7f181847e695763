"""The relations of a model's entry, made strict, with the type that the answer gives to each name.

A relation that cannot be kept is left out and named, and neither its entry nor the other relations
suffer. Pure.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from unicodedata import combining, normalize

from app.language.llm.embedder import encodable
from app.language.llm.extractor import MOST_RELATIONS, SPEAKER, ProposedRelation
from app.language.text.names import name_key

ENTITY_TYPES: Final = (
    "person", "organization", "place", "product", "pet", "field", "work", "event", "thing",
)  # fmt: skip
"""What a model may say that a name is; the last is everything else."""

LONGEST_NAME: Final = 255
_LONGEST_TYPE: Final = 50
_LONGEST_RELATION: Final = 100
_ANYTHING: Final = ENTITY_TYPES[-1]

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN: Final = re.compile(r"[\s_./-]+")
_SNAKE: Final = re.compile(r"[a-z][a-z0-9_]*")

EntityTypes = Mapping[str, str]
"""What names are, by their keys."""


class MalformedRelationError(ValueError):
    """The message names members, never their values."""


def read_entity_types(value: Any) -> EntityTypes:
    """What an answer says that names are; of what it says twice the first counts.

    Without the list, or a type that is one of ours, a name is any thing.
    """
    found: dict[str, str] = {name_key(SPEAKER): ENTITY_TYPES[0]}
    for entity in value if isinstance(value, list) else ():
        name = _name(entity.get("name")) if isinstance(entity, dict) else None
        if name is not None:
            kind = _entity_type(entity.get("type"))
            found.setdefault(name_key(name), kind if kind in ENTITY_TYPES else _ANYTHING)
    return found


def read_relations(
    value: Any, types: EntityTypes
) -> tuple[tuple[ProposedRelation, ...], list[str]]:
    """The relations of an entry, each once, and what was wrong with the others.

    An entry without the member has none: an endpoint that knows no schema may leave it out.

    Args:
        value: as it stands in the entry.
        types: of names whose type the relation does not give itself, as answers once did.

    """
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), ["relations: no list"]
    found: dict[ProposedRelation, None] = {}
    faults: list[str] = []
    for number, relation in enumerate(value[:MOST_RELATIONS], 1):
        try:
            found[_relation(relation, types)] = None
        except MalformedRelationError as error:
            faults.append(f"relation {number} unusable: {error}")
    surplus = len(value) - MOST_RELATIONS
    if surplus > 0:
        faults.append(f"{surplus} relations beyond the {MOST_RELATIONS} that are read")
    return tuple(found), faults


def snake(text: str) -> str | None:
    """Words as lower snake_case in ASCII, or None where they are no Latin text."""
    plain = "".join(char for char in normalize("NFKD", text) if not combining(char))
    name = _BETWEEN.sub("_", _HUMP.sub("_", plain.strip())).strip("_").lower()
    return name if _SNAKE.fullmatch(name) else None


def _relation(value: Any, types: EntityTypes) -> ProposedRelation:
    """One relation of an entry.

    Raises:
        MalformedRelationError: it cannot be kept; says which members are missing.

    """
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
        _type_of(source, value.get("source_type"), types),
        _type_of(destination, value.get("destination_type"), types),
    )


def _type_of(name: str, given: Any, types: EntityTypes) -> str:
    return types.get(name_key(name), _ANYTHING) if given is None else _entity_type(given)


def _name(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    text = " ".join(encodable(value.replace("\x00", "")).split())
    return text if 0 < len(text) <= LONGEST_NAME else None


def _entity_type(value: Any) -> str:
    """One word; the names count, so an unusable type is any thing."""
    name = snake(value) if isinstance(value, str) else None
    return name if name is not None and len(name) <= _LONGEST_TYPE else _ANYTHING
