"""Dependencies of routes: a service by its class, the expected version."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from fastapi import Depends, Header, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel

from app.errors import UnprocessableError, VersionRequiredError
from app.platform.http.problems import LONGEST_NAME, MOST_FAULTS

Service = TypeVar("Service")

_VERSION = re.compile(r'(?:W/)?"?(\d{1,18})"?\Z')


class InvalidVersionError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self) -> None:
        super().__init__(
            "`If-Match` must be the number in `version`, as in `If-Match: 3`.",
            errors=[{"location": ["header", "If-Match"], "detail": "not a version number"}],
        )


class UnknownParameterError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            "One or more query parameters are unknown here; see `errors`.",
            errors=[
                {"location": ["query", name[:LONGEST_NAME]], "detail": "unknown parameter"}
                for name in names[:MOST_FAULTS]
            ],
        )


class SlashInIdError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            "An id in the path holds an encoded `/`, which no id may: it would be another path.",
            errors=[{"location": ["path", name], "detail": "no id holds a `/`"} for name in names],
        )


def refuse_encoded_slash(request: Request) -> None:
    """Raises SlashInIdError: the server decoded `%2F`, so that an id would be part of the path.

    Of `DELETE /v1/users/ana%2Fprofile` nothing is left that tells it from Ana's profile.
    """
    raw = request.scope.get("raw_path") or b""
    if b"%2f" in raw.lower() and not _in_rest_alone(request.scope, raw.lower()):
        raise SlashInIdError(sorted(request.path_params))


def _in_rest_alone(scope: Mapping[str, Any], raw: bytes) -> bool:
    """Whether encoded slashes stand in a name alone that takes the rest of the path."""
    before, takes_rest, _ = scope["route"].path.partition(":path}")
    depth = before.count("/")
    parts = raw.removeprefix(scope.get("root_path", "").lower().encode()).split(b"/", depth)
    return (
        bool(takes_rest) and len(parts) > depth and not any(b"%2f" in part for part in parts[:-1])
    )


def refuse_unknown_parameters(request: Request) -> None:
    """Raises UnknownParameterError for a query parameter that is not in the route's signature."""
    if request.scope["query_string"]:
        known = _parameters(request.scope["route"])
        unknown = [name for name in request.query_params if name not in known]
        if unknown:
            raise UnknownParameterError(sorted(unknown))


# A route has no hash; the function that it calls has, and lives as long.
_KNOWN: WeakKeyDictionary[Callable[..., Any], frozenset[str]] = WeakKeyDictionary()


def _parameters(route: APIRoute) -> frozenset[str]:
    """The names of a route's query parameters, those of its dependencies among them."""
    known = _KNOWN.get(route.endpoint)
    if known is not None:
        return known
    names: set[str] = set()
    waiting = [route.dependant]
    while waiting:
        dependant = waiting.pop()
        waiting += dependant.dependencies
        for parameter in dependant.query_params:
            kind = parameter.field_info.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                names |= {field.alias or name for name, field in kind.model_fields.items()}
            else:
                names.add(parameter.alias)
    return _KNOWN.setdefault(route.endpoint, frozenset(names))


class ServiceProvider(Protocol):
    """Builds services; the application keeps one in `request.state.services`."""

    def get(self, kind: type[Service]) -> Service:
        """The service of this class."""


def service_of(request: Request, kind: type[Service]) -> Service:
    """The service of a class, for hot routes where a dependency would cost too much."""
    services: ServiceProvider = request.state.services
    return services.get(kind)


_PROVIDERS: dict[type[Any], Callable[[Request], Awaitable[Any]]] = {}


def provider(kind: type[Any]) -> Callable[[Request], Awaitable[Any]]:
    """The dependency that gives routes the service of a class; one per class."""

    async def provide(request: Request) -> Any:
        return service_of(request, kind)

    return _PROVIDERS.setdefault(kind, provide)


def provided(kind: type[Any]) -> Any:
    """Marks a route's argument that gets the service of this class."""
    return Depends(provider(kind))


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
    """Raises InvalidVersionError."""
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
    """Raises VersionRequiredError."""
    if if_match is None:
        raise VersionRequiredError
    return await get_expected_version(if_match)


RequiredVersionDep = Annotated[int | None, Depends(get_required_version)]
"""Where the last write would replace content that the caller has not read."""
