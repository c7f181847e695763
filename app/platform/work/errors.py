"""The master switch and the flags of agent and session; effective is all of them (B-41)."""

from dataclasses import dataclass

from app.errors import ConflictError, UnavailableError


class MemoryDisabledError(UnavailableError):
    code = "memory_disabled"
    title = "Memory is switched off"

    def __init__(self) -> None:
        super().__init__(
            "The operator has switched memory off (MEMORY_ENABLED=false): what is stored can "
            "be read and deleted, and nothing can be written."
        )


class MemoryPausedError(ConflictError):
    code = "memory_paused"
    title = "Memory is switched off here"

    def __init__(self, kind: str, value: str) -> None:
        super().__init__(
            f"The {kind} {value} has `memory_enabled` set to false: nothing is remembered for it.",
            **{f"{kind}_id": value},
        )


@dataclass(frozen=True, slots=True)
class Switches:
    """What the deployment allows."""

    enabled: bool

    def refuse_writes(self) -> None:
        """Raises MemoryDisabledError while the master switch is off."""
        if not self.enabled:
            raise MemoryDisabledError
