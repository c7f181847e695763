"""Namespaces as they are stored, and whose store a caller works in. Pure.

The application has one store, and so has each agent whose key is restricted to it. A user's own
key, or a request that acts for a user, works in a store of that user, and with what the
application's or the agent's store has of the user.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from app.identity.tenants.access import Access


def path_of(namespace: Sequence[str]) -> str:
    """The labels joined by periods, which no label has."""
    return ".".join(namespace)


def namespace_of(path: str) -> list[str]:
    return path.split(".")


def item_id(space: str, path: str, key: str) -> str:
    """The same id in every tenant, so that an import meets what is there."""
    named = f"{space}\x00{path}\x00{key}"
    return f"itm_{sha256(named.encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class Spaces:
    """Whose stores a caller sees.

    Args:
        shared: the application's or agent's store; a user sees only what it has of the user.
        own: the user's own store; the same as `shared` for everybody else.

    """

    shared: str
    own: str
    user_id: str | None

    @classmethod
    def of(cls, access: Access) -> "Spaces":
        agent, user = access.agent_id or "", access.user_id
        return cls(f"{agent}/", f"{agent}/{user or ''}", user)

    def ids(self, path: str, key: str) -> tuple[str, ...]:
        """Ids that the item may have, the caller's own first."""
        return tuple(item_id(space, path, key) for space in dict.fromkeys((self.own, self.shared)))
