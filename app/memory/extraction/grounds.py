"""Where the statements of a run may be stored: one place per scope, and what bars a scope. Pure."""

from dataclasses import dataclass

from app.language.llm.extractor import Scope
from app.memory.memories.owner import MemoryOwner


@dataclass(frozen=True, slots=True)
class Grounds:
    """Who took part in what is read.

    Args:
        agent_id: whose private memories they become; None lets every agent of the user see
            them.
        session_id: the conversation, when there is one.
        project_id: its project, when the user may write there.
        scope: the only scope there is, when the caller has named one.

    """

    user_id: str | None
    agent_id: str | None = None
    session_id: str | None = None
    project_id: str | None = None
    scope: Scope | None = None

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """For whom a proposal may be meant here, the usual one first."""
        if self.scope is not None:
            return (self.scope,)
        ids = {"user": self.user_id, "session": self.session_id, "project": self.project_id}
        everyone: tuple[Scope, ...] = ("user", "session", "project")
        return tuple(scope for scope in everyone if ids[scope] is not None)

    @property
    def first(self) -> MemoryOwner:
        """The usual place."""
        place = self.place(self.scopes[0])
        assert place is not None  # noqa: S101 (the first scope is one of those allowed)
        return place

    def place(self, scope: Scope) -> MemoryOwner | None:
        """Columns of a memory of this scope; None when it is not allowed here.

        Knowledge that all users of an agent share is only ever saved when a caller asks for
        it by name: a conversation cannot write into it.
        """
        if scope not in self.scopes:
            return None
        ids = {
            "user": self.user_id,
            "session": self.session_id,
            "project": self.project_id,
            "agent": self.agent_id,
        }
        scope_id = ids[scope]
        if scope_id is None:
            return None
        return MemoryOwner(
            scope=scope,
            scope_id=scope_id,
            user_id=None if scope == "agent" else self.user_id,
            agent_id=self.agent_id,
            session_id=self.session_id,
            project_id=self.project_id,
        )
