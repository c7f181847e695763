"""Why nothing is written: memory is switched off, by the operator or for an agent or a user."""

from app.errors import ConflictError, UnavailableError


class MemoryDisabledError(UnavailableError):
    code = "memory_disabled"
    title = "Memory is switched off"

    def __init__(self) -> None:
        super().__init__(
            "The operator has switched memory off (MEMORY_ENABLED=false): nothing new is "
            "remembered. What is stored can be read and deleted, and users, agents, sessions and "
            "projects can be managed."
        )


class MemoryPausedError(ConflictError):
    code = "memory_paused"
    title = "Memory is switched off here"

    def __init__(self, kind: str, value: str) -> None:
        super().__init__(
            f"The {kind} {value} has `memory_enabled` set to false: nothing is remembered for it.",
            **{f"{kind}_id": value},
        )
