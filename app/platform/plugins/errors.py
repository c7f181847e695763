"""What a processor that may not fail answers, and who cannot be chosen."""

from collections.abc import Sequence

from app.errors import UnavailableError, UnprocessableError


class ProcessorFailedError(UnavailableError):
    """One whose policy is `refuse` failed; nothing was written."""

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
    """A `config` whose processors are not allowed here; nothing was changed."""

    code = "invalid_config"
    title = "Setting not usable"

    def __init__(self, names: Sequence[str]) -> None:
        listed = ", ".join(names) or "none; MEMORY_PROCESSORS allows them"
        wanted = f"a list of names of processors, each once: {listed}"
        super().__init__(
            f"`config.processors` must be {wanted}.",
            errors=[{"location": ["body", "config", "processors"], "detail": f"must be {wanted}"}],
        )
