"""Whose rows a caller may see: the tenant, and within it perhaps one agent or one user.

Every repository is built with an `Access`, so that no query can forget it. A key may be bound to
a user, or act for one in a single request: to everybody else the two are the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from app.errors import IdNotAllowedError
from app.platform.values.fields import LONGEST, PLAIN

_REST = re.compile(r"[^:~]+")
_UUID_LENGTH: Final = 36
_HASH_DIGITS: Final = 24
"""With the two characters around it the hash leaves room for a UUID."""

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
        own_prefix: what new ids begin with that the caller may choose, if its key is bound.

    """

    tenant_id: str
    agent_id: str | None = None
    user_id: str | None = None
    default_user_id: str | None = None
    own_prefix: str | None = None

    @property
    def restricted(self) -> bool:
        return self.agent_id is not None or self.user_id is not None

    def refuse_choice(self, field: str, value: str | None) -> None:
        """Check an id that the caller has chosen and that it cannot see yet.

        A bound key would learn from a refusal which ids others have, so that it chooses among its
        own alone, and hears the same of all others.

        Raises:
            IdNotAllowedError: the id is not the key's to choose.

        """
        named = self.own_prefix
        if named is None or value is None or (field == "user_id" and f"{value}:" == named):
            return
        plain = plain_prefix(named)
        if not any(
            value.startswith(prefix) and _REST.fullmatch(value, len(prefix))
            for prefix in (named, plain)
        ):
            raise IdNotAllowedError(field, plain)


def own_prefix(user_id: str | None, agent_id: str | None) -> str | None:
    """What ids begin with that only a key bound to this user or agent may choose.

    The last `:` or `~` of an id ends its prefix, so that no prefix holds ids of another.
    """
    if user_id is not None:
        return f"{user_id}:"
    return None if agent_id is None else f"{agent_id}~"


def plain_prefix(named: str) -> str:
    """A prefix of the same key under which every kind of id can be chosen.

    It is `named` itself if that is ASCII and leaves room for a UUID behind it; else a hash of it,
    the same at all times. A hash ends with `=`, and nothing behind any prefix has `:` or `~`: an
    id is under one of the two forms at most, so that the hash of one key is no prefix of another.
    """
    if PLAIN.fullmatch(named) and len(named) + _UUID_LENGTH <= LONGEST:
        return named
    return f"u{sha256(named.encode()).hexdigest()[:_HASH_DIGITS]}="


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
