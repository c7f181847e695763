"""What a member of a project may do. Pure.

The role says what a member may do, and the visibility of an item narrows it: `public` is read
by every user of the tenant, `members` by the project, `owner_only` by its author alone. Owners
and admins may remove what they cannot read. `memories/visibility_sql.py` says the same to SQL,
and a test compares the two case by case.
"""

from typing import Final, Literal, get_args

from app.identity.projects.schemas import Role

Visibility = Literal["public", "members", "owner_only"]

Action = Literal["read", "create", "edit", "delete", "purge"]
"""What is done to an item. `delete` hides it, `purge` removes it at once."""

Management = Literal["edit_project", "manage_members", "list_items", "transfer", "delete_project"]
"""What is done to the project itself."""

ROLES: Final[tuple[Role, ...]] = get_args(Role)
MANAGING: Final[frozenset[Role]] = frozenset({"owner", "admin"})
WRITING: Final[frozenset[Role]] = frozenset({"owner", "admin", "editor"})

_MANAGED_BY: Final[dict[Management, frozenset[Role]]] = {
    "edit_project": MANAGING,
    "manage_members": MANAGING,
    "list_items": MANAGING,
    "transfer": frozenset({"owner"}),
    "delete_project": frozenset({"owner"}),
}

_BELOW_ADMIN: Final[frozenset[Role | None]] = frozenset({"editor", "viewer", None})


def allows(role: Role | None, action: Action, *, visibility: Visibility, own: bool) -> bool:
    """Whether a role allows an action on an item.

    Args:
        role: None for a user of the tenant who is no member.
        visibility: the item's, as it is before the action.
        own: whether the item is the caller's; no caller creates in another's name.

    """
    if role is None:
        return action == "read" and visibility == "public"
    readable = own or visibility != "owner_only"
    if action == "read":
        return readable
    if role == "viewer":
        return False
    if action == "create" or role == "editor":
        return own
    return readable or action in {"delete", "purge"}


def may(role: Role | None, action: Management) -> bool:
    """Whether a role allows an action on the project."""
    return role in _MANAGED_BY[action]


def needed(action: Management) -> list[Role]:
    """The roles that may, the strongest first."""
    return [role for role in ROLES if role in _MANAGED_BY[action]]


def may_assign(role: Role | None, *, before: Role | None, after: Role | None) -> bool:
    """Whether a role allows the change of another member's role; None is no member.

    An admin neither makes nor unmakes owners and admins.
    """
    if role == "owner":
        return True
    return role == "admin" and {before, after} <= _BELOW_ADMIN
