"""What can go wrong with feedback."""

from collections.abc import Sequence

from app.errors import UnprocessableError


class SensitiveCommentError(UnprocessableError):
    code = "sensitive"
    title = "Something that must not be kept"

    def __init__(self, detectors: Sequence[str]) -> None:
        listed = ", ".join(detectors)
        super().__init__(
            "Nothing was stored: the comment holds what no memory may hold either.",
            detectors=list(detectors),
            errors=[{"location": ["body", "comment"], "detail": f"holds {listed}"}],
        )
