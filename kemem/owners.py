"""Whose a thread or a session is: somebody has to say so, or all would share one user."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from kemem.client import BaseMemory
from kemem.ids import checked_id


class UserSource(Enum):
    """Who says which user it is."""

    PER_RUN = "each run"
    KEY_USER = "the key"


PER_RUN: Final = UserSource.PER_RUN
"""As `user_id`: each run names its user in `configurable` or its context."""
KEY_USER: Final = UserSource.KEY_USER
"""As `user_id`: the key is bound to a user, so nobody else has to be named."""


class UserChoice:
    """The user of each run, as an adapter was told when it was built.

    Raises:
        ValueError: nothing says whose the threads are.

    """

    def __init__(self, adapter: str, user_id: str | UserSource | None, client: BaseMemory) -> None:
        if not user_id and client.acting_user is None:
            raise ValueError(
                f"whose threads are these? Give {adapter} a user_id, or user_id=KEY_USER if the "
                "key is bound to a user. With LangGraph user_id=PER_RUN says that each run "
                'names its user in "configurable".'
            )
        self.user_id = checked_id("user", user_id) if isinstance(user_id, str) else None
        self._may_lack = client.acting_user is not None or user_id is KEY_USER

    def of_run(self, given: Mapping[str, Any]) -> str | None:
        """The user that a run names, else the one of the adapter.

        Raises:
            ValueError: the run names none although it has to, or one that can be none.

        """
        if "user_id" in given:
            if given["user_id"] in (None, ""):
                raise ValueError("the user_id of the run is empty: name its user, or leave it out")
            return checked_id("user", str(given["user_id"]))
        if self.user_id is None and not self._may_lack:
            raise ValueError(
                'the run names no user: pass {"configurable": {"thread_id": "…", "user_id": "…"}} '
                "as its config"
            )
        return self.user_id
