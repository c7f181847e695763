"""Routes that are asked so often that reading the request must cost little.

FastAPI parses the header of the content type as an e-mail's, walks the tree of dependencies and
copies what it finds, for every request anew. A hot route has a body, parameters of its path and
dependencies of the request alone, and answers with a `Response`: it reads them itself. Whatever is
not as it should be goes to FastAPI, which says what is wrong: errors and the published schema are
the same.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from typing_extensions import override

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

JSON: Final = "application/json"


class HotRoute(APIRoute):
    """A route with a JSON body, parameters of its path, dependencies that take the request, and
    nothing else.
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
        parameters = [(one.name, one.alias, one.validate) for one in self.dependant.path_params]

        async def handle(request: Request) -> Response:
            content = None
            if request.headers.get("content-type") == JSON:
                content = _parsed(await request.body())
            if not isinstance(content, dict):
                return await ordinary(request)
            values: dict[str, Any] = {}
            for name, alias, validate in parameters:
                values[name], errors = validate(request.path_params[alias])
                if errors:
                    return await ordinary(request)
            try:
                values[body_name] = body_model.model_validate(content)
            except ValidationError:
                return await ordinary(request)
            # Last: they count the request, and FastAPI would have them count it again.
            for name, find in dependencies:
                values[name] = await find(request)
            answer: Response = await self.endpoint(**values)
            return answer

        return handle


def _parsed(body: bytes) -> Any:
    """What the JSON says; None where it is none."""
    try:
        return from_json(body)
    except ValueError:
        return None


def _dependencies(dependant: Dependant) -> list[tuple[str, Callable[[Request], Awaitable[Any]]]]:
    found = []
    for one in dependant.dependencies:
        if one.name is None or one.call is None or one.request_param_name != "request":
            raise TypeError(f"{one.call} is no dependency of a hot route")
        if one.dependencies or one.query_params or one.header_params or one.body_params:
            raise TypeError(f"{one.call} takes more than the request")
        found.append((one.name, one.call))
    return found


def _body(dependant: Dependant) -> tuple[str, type[BaseModel]]:
    others = (dependant.query_params, dependant.header_params, dependant.cookie_params)
    if len(dependant.body_params) != 1 or any(others):
        raise TypeError("a hot route has a body, parameters of its path and nothing else")
    [field] = dependant.body_params
    model = field.field_info.annotation
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TypeError("the body of a hot route is one schema")
    return field.name, model
