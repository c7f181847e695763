"""Whose rows a caller may see: the tenant, and within it perhaps one agent or one user.

Every repository is built with an `Access`, so that no query can forget it. A key may be bound to
a user, or act for one in a single request: to everybody else the two are the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

SCOPES = ("read", "write", "admin", "operator")

_IMPLIED = {
    "read": {"read"},
    "write": {"read", "write"},
    "admin": {"read", "write", "admin"},
    "operator": {"operator"},
}


@dataclass(frozen=True, slots=True)
class Access:
    """The rows of one tenant that a caller may touch.

    Args:
        agent_id: the agent that the key is bound to.
        user_id: the user that the key is bound to or acts for.
        default_user_id: whom a request is about that names nobody; None where it must.

    """

    tenant_id: str
    agent_id: str | None = None
    user_id: str | None = None
    default_user_id: str | None = None

    @property
    def restricted(self) -> bool:
        return self.agent_id is not None or self.user_id is not None


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever holds the key. Its tenant never comes from a path or a body."""

    access: Access
    key_id: str
    scopes: frozenset[str]
    config: Mapping[str, Any]
    """The tenant's settings, such as `embedding`, the handle of its embedder."""
    embedding_models: tuple[str, ...] = ()
    """Models that made a vector of this tenant."""
    acting: bool = False
    """The request names its user in `KeMem-User`."""

    @property
    def tenant_id(self) -> str:
        return self.access.tenant_id

    def acting_as(self, user_id: str) -> "Principal":
        """The same key, as the user's own would be answered, which reads and writes at most."""
        return replace(
            self,
            access=replace(self.access, user_id=user_id),
            scopes=frozenset(scope for scope in ("read", "write") if self.may(scope)),
            acting=True,
        )

    def may(self, scope: str) -> bool:
        """Whether one of the key's scopes is `scope` or implies it."""
        return any(scope in _IMPLIED.get(own, set()) for own in self.scopes)
