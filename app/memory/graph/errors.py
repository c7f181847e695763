"""What can go wrong with the graph."""

from collections.abc import Sequence

from app.errors import ConflictError, ForbiddenError, NotFoundError, UnprocessableError


class EntityNotFoundError(NotFoundError):
    code = "entity_not_found"
    title = "Entity not found"

    def __init__(self, entity_id: str) -> None:
        super().__init__(f"No entity {entity_id}.", entity_id=entity_id)


class AliasNotFoundError(NotFoundError):
    code = "alias_not_found"
    title = "Alias not found"

    def __init__(self, entity_id: str) -> None:
        super().__init__(f"The entity {entity_id} has no such alias.", entity_id=entity_id)


class RelationNotFoundError(NotFoundError):
    """None for this caller, or none any more: what was withdrawn has its history alone."""

    code = "relation_not_found"
    title = "Relation not found"

    def __init__(self, relation_id: str) -> None:
        super().__init__(f"No relation {relation_id}.", relation_id=relation_id)


class ChangeNotFoundError(NotFoundError):
    code = "graph_change_not_found"
    title = "Change of the graph not found"

    def __init__(self, change_id: str) -> None:
        super().__init__(f"No change {change_id}.", change_id=change_id)


class EntityTakenError(ConflictError):
    code = "entity_exists"
    title = "Entity exists"

    def __init__(self, entity_id: str) -> None:
        super().__init__(
            f"The entity {entity_id} of the same owner has this name: merge the two, or use it.",
            entity_id=entity_id,
        )


class EntityMergedError(ConflictError):
    code = "entity_merged"
    title = "Entity was merged"

    def __init__(self, entity_id: str, into: str) -> None:
        super().__init__(
            f"The entity {entity_id} was merged into {into}: change that, or undo the merge.",
            entity_id=entity_id,
            merged_into=into,
        )


class RelationTakenError(ConflictError):
    code = "relation_exists"
    title = "Relation exists"

    def __init__(self, relation_id: str) -> None:
        super().__init__(f"The relation {relation_id} says that.", relation_id=relation_id)


class ChangeUndoneError(ConflictError):
    code = "change_undone"
    title = "Change was undone"

    def __init__(self, change_id: str) -> None:
        super().__init__(f"The change {change_id} was undone already.", change_id=change_id)


class ChangedSinceError(ConflictError):
    """An undo would overwrite, or lose, what came after it."""

    code = "changed_since"
    title = "Changed since"

    def __init__(self, rows: Sequence[str]) -> None:
        super().__init__(
            f"Nothing was undone, since this came after it: {', '.join(rows)}.", rows=list(rows)
        )


class InvalidChangeError(ConflictError):
    """Rows of a change that cannot be put back: of an import, or of memories that are gone."""

    code = "invalid_change"
    title = "Change not valid"

    def __init__(self, change_id: str) -> None:
        super().__init__(
            f"Nothing was undone: rows kept with the change {change_id} do not fit its graph. They "
            "were imported so, or what they stand on is gone.",
            change_id=change_id,
        )


class DifferentOwnersError(UnprocessableError):
    code = "different_owners"
    title = "Entities of different owners"

    def __init__(self, field: str) -> None:
        super().__init__(
            "These entities are not of one user, project or agent; a graph never crosses them.",
            errors=[{"location": ["body", field], "detail": "of another owner"}],
        )


class SameEntityError(UnprocessableError):
    code = "same_entity"
    title = "The same entity twice"

    def __init__(self, field: str) -> None:
        super().__init__(
            "An entity has no relation to itself, and is not merged into itself.",
            errors=[{"location": ["body", field], "detail": "the same entity"}],
        )


class NotOfEntityError(UnprocessableError):
    """A split names what the entity does not have."""

    code = "not_of_entity"
    title = "Not of this entity"

    def __init__(self, field: str, missing: Sequence[str]) -> None:
        super().__init__(
            f"The entity has no {', '.join(missing)}.",
            errors=[{"location": ["body", field], "detail": "not of this entity"}],
        )


class InvalidPeriodError(UnprocessableError):
    code = "invalid_validity"
    title = "Period not valid"

    def __init__(self) -> None:
        super().__init__(
            "`valid_to` must not lie before `valid_from`.",
            errors=[{"location": ["body", "valid_to"], "detail": "before valid_from"}],
        )


class TooManyRowsError(UnprocessableError):
    code = "too_many_rows"
    title = "Too much hangs on it"

    def __init__(self, rows: int, most: int) -> None:
        super().__init__(f"This would touch more than {most} rows at once.", rows=rows, limit=most)


class NotYourGraphError(ForbiddenError):
    """A user's key changes what is that user's alone."""

    code = "not_your_graph"
    title = "Not yours to change"

    def __init__(self, thing_id: str) -> None:
        super().__init__(f"{thing_id} is another's, and only shared with you.", id=thing_id)
