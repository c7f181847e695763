"""Errors of processors: one that must not fail did, or one was chosen that is not allowed."""

from collections.abc import Sequence

from app.errors import UnavailableError, UnprocessableError


class ProcessorFailedError(UnavailableError):
    """A processor with the policy `refuse` failed; nothing was written."""

    code = "processor_failed"
    title = "A processor failed"

    def __init__(self, name: str, point: str) -> None:
        super().__init__(
            f"The processor `{name}` failed at `{point}`, and nothing goes on without it.",
            processor=name,
            point=point,
        )
        self.name = name
        self.point = point


class InvalidProcessorsError(UnprocessableError):
    """A `config` names processors that are not allowed here; nothing was changed."""

    code = "invalid_config"
    title = "Setting not usable"

    def __init__(self, names: Sequence[str]) -> None:
        listed = ", ".join(names) or "none; MEMORY_PROCESSORS allows them"
        wanted = f"a list of names of processors, each once: {listed}"
        super().__init__(
            f"`config.processors` must be {wanted}.",
            errors=[{"location": ["body", "config", "processors"], "detail": f"must be {wanted}"}],
        )
