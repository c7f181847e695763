"""What any route may ask for: the runtime, the version it expects."""

import re
from typing import Annotated

from fastapi import Depends, Header, Request

from app.errors import UnprocessableError, VersionRequiredError
from app.runtime import Runtime

_VERSION = re.compile(r'(?:W/)?"?(\d{1,18})"?\Z')


class InvalidVersionError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self) -> None:
        super().__init__(
            "`If-Match` must be the number in `version`, as in `If-Match: 3`.",
            errors=[{"location": ["header", "If-Match"], "detail": "not a version number"}],
        )


async def get_runtime(request: Request) -> Runtime:
    runtime: Runtime = request.state.runtime
    return runtime


RuntimeDep = Annotated[Runtime, Depends(get_runtime)]


async def get_expected_version(
    if_match: Annotated[
        str | None,
        Header(
            alias="If-Match",
            description="The `version` you read; the change is refused when it has moved on.",
            max_length=64,
        ),
    ] = None,
) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    found = _VERSION.match(if_match.strip())
    if found is None:
        raise InvalidVersionError
    return int(found[1])


VersionDep = Annotated[int | None, Depends(get_expected_version)]


async def get_required_version(
    if_match: Annotated[
        str | None,
        Header(
            alias="If-Match",
            description="The `version` you read, or `*` for whatever it is now. Required: the "
            "change is refused when it is missing, or has moved on.",
            max_length=64,
        ),
    ] = None,
) -> int | None:
    if if_match is None:
        raise VersionRequiredError
    return await get_expected_version(if_match)


RequiredVersionDep = Annotated[int | None, Depends(get_required_version)]
"""Where the last write would win over words that nobody has read (`design.md` 13)."""
