"""Routes that are asked so often that reading the request must cost little.

FastAPI parses the header of the content type as an e-mail's, walks the tree of dependencies and
copies what it finds, for every request anew. A hot route has a body, parameters of its path,
dependencies of the request and its headers, and answers with a `Response`: it reads them itself.
What it may be asked with in the query has defaults, which stand for a request without one. Whatever
is not as it should be goes to FastAPI, which says what is wrong: errors and the published schema
are the same.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIRouter, iter_route_contexts
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from typing_extensions import override

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Parameters = Sequence[tuple[str, str, Callable[[Any], tuple[Any, Any]]]]
"""Each an argument, its name in the request, and what validates it."""

JSON: Final = "application/json"

_OF_THE_ROUTE: Final = ("path", "dependencies", "max_body_size")
"""What a hot route looks up in itself: an inclusion that adds to it would go unheeded."""


class HotRoute(APIRoute):
    """A route with a JSON body, parameters of its path, a query that may be left out, dependencies
    that take the request and its headers, and nothing else.
    """

    @override
    def get_route_handler(self) -> Handler:
        """The handler of a request.

        Raises:
            TypeError: the route takes what only FastAPI can read.

        """
        ordinary = super().get_route_handler()
        dependencies = _dependencies(self.dependant)
        body_name, body_model = _body(self.dependant)
        parameters = _parameters(self.dependant.path_params)
        unasked = _unasked(self.dependant)

        async def handle(request: Request) -> Response:
            content = None
            if request.headers.get("content-type") == JSON and not request.scope["query_string"]:
                content = _parsed(await request.body())
            if not isinstance(content, dict):
                return await ordinary(request)
            values = dict(unasked)
            for name, alias, validate in parameters:
                values[name], errors = validate(request.path_params[alias])
                if errors:
                    return await ordinary(request)
            try:
                values[body_name] = body_model.model_validate(content)
            except ValidationError:
                return await ordinary(request)
            found = [_headers(each.headers, request) for each in dependencies]
            if None in found:
                return await ordinary(request)
            # Last: they count the request, and FastAPI would have them count it again.
            for each, headers in zip(dependencies, found, strict=True):
                values[each.name] = await each.find(request, **(headers or {}))
            answer: Response = await self.endpoint(**values)
            return answer

        return handle


def try_first(router: APIRouter) -> None:
    """Let a router try its hot routes before all that was included in it.

    FastAPI looks through each included router twice to find a route: 0.3 ms for one that stands
    behind a few others. The routes stay in their places too, where the schema has them.

    Raises:
        TypeError: a router was included with what its hot routes do not see, as a prefix.

    """
    for context in reversed(list(iter_route_contexts(router.routes))):
        route = context.original_route
        if not isinstance(route, HotRoute):
            continue
        for name in _OF_THE_ROUTE:
            if getattr(context, name) != getattr(route, name):
                raise TypeError(f"{route} is included with another {name}")
        hidden = copy(route)
        hidden.include_in_schema = False
        router.routes.insert(0, hidden)


def _parsed(body: bytes) -> Any:
    """What the JSON says; None where it is none."""
    try:
        return from_json(body)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Dependency:
    """What fills an argument of the route, and the headers that it takes besides the request."""

    name: str
    find: Callable[..., Awaitable[Any]]
    headers: Parameters


def _dependencies(dependant: Dependant) -> list[_Dependency]:
    found = []
    for dependency in dependant.dependencies:
        if (
            dependency.name is None
            or dependency.call is None
            or dependency.request_param_name != "request"
        ):
            raise TypeError(f"{dependency.call} is no dependency of a hot route")
        if (
            dependency.dependencies
            or dependency.query_params
            or dependency.body_params
            or dependency.cookie_params
        ):
            raise TypeError(f"{dependency.call} takes more than the request and headers")
        if any(field.field_info.is_required() for field in dependency.header_params):
            raise TypeError(f"{dependency.call} takes a header that may be missing")
        found.append(
            _Dependency(dependency.name, dependency.call, _parameters(dependency.header_params))
        )
    return found


def _parameters(fields: Iterable[Any]) -> Parameters:
    return [(field.name, field.alias, field.validate) for field in fields]


def _headers(parameters: Parameters, request: Request) -> dict[str, Any] | None:
    """The given headers by argument; None where one is not as it should be."""
    values = {}
    for name, alias, validate in parameters:
        value = request.headers.get(alias)
        if value is not None:
            values[name], errors = validate(value)
            if errors:
                return None
    return values


def _unasked(dependant: Dependant) -> dict[str, Any]:
    """What a request without a query asks, by argument."""
    values = {}
    for field in dependant.query_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            values[field.name] = model()
        elif field.field_info.is_required():
            raise TypeError(f"{field.name} has no default")
        else:
            values[field.name] = field.get_default()
    return values


def _body(dependant: Dependant) -> tuple[str, type[BaseModel]]:
    others = (dependant.header_params, dependant.cookie_params)
    if len(dependant.body_params) != 1 or any(others):
        raise TypeError("a hot route has a body, and takes no header or cookie itself")
    [field] = dependant.body_params
    model = field.field_info.annotation
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TypeError("the body of a hot route is one schema")
    return field.name, model
