"""A hot route answers as FastAPI does, and reads what is well formed itself."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.routing import APIRoute
from httpx import ASGITransport, AsyncClient
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from typing_extensions import override

from app.platform.http.hot_route import HotRoute, try_first

JSON = {"content-type": "application/json"}


class Asked(BaseModel):
    text: str
    limit: Annotated[int, Field(ge=1, le=3)] = 2


async def caller(request: Request) -> str:
    request.app.state.asked += 1
    name = request.headers.get("caller")
    if name is None:
        raise HTTPException(401, "who is it?")
    return name


async def answer(body: Asked, name: Annotated[str, Depends(caller)]) -> Response:
    # A lone surrogate is a text in JSON, and none in an answer.
    return Response(ascii(f"{name} {body.text} {body.limit}"))


class Wanted(BaseModel):
    loud: bool = False


async def noted(
    request: Request, note: Annotated[str | None, Header(alias="X-Note", max_length=3)] = None
) -> str | None:
    return note and f"{note} {request.url.path[-1]}"


async def answer_noted(
    body: Asked,
    query: Annotated[Wanted, Query()],
    name: Annotated[str, Depends(caller)],
    note: Annotated[str | None, Depends(noted)],
) -> Response:
    return Response(f"{name} {body.text} {query.loud} {note}")


async def answer_at(
    place: Annotated[str, Path(max_length=3)], body: Asked, name: Annotated[str, Depends(caller)]
) -> Response:
    return Response(f"{name} {place} {body.text}")


class Ordinary(APIRoute):
    """Counts what FastAPI reads."""

    read = 0

    @override
    def get_route_handler(self) -> Callable[[Request], Any]:
        handler = super().get_route_handler()

        async def counting(request: Request) -> Response:
            Ordinary.read += 1
            return await handler(request)

        return counting


class Hot(HotRoute, Ordinary):
    pass


@pytest.fixture(params=[False, True], ids=["in_place", "tried_first"])
async def client(request: pytest.FixtureRequest) -> Any:
    router = APIRouter(prefix="/in")
    router.add_api_route("/hot", answer, methods=["POST"], route_class_override=Hot)
    router.add_api_route("/ordinary", answer, methods=["POST"])
    router.add_api_route("/noted/hot", answer_noted, methods=["POST"], route_class_override=Hot)
    router.add_api_route("/noted/oot", answer_noted, methods=["POST"])
    router.add_api_route("/hot/{place}", answer_at, methods=["POST"], route_class_override=Hot)
    router.add_api_route("/ordinary/{place}", answer_at, methods=["POST"])
    app = FastAPI()
    app.state.asked = 0
    app.include_router(router)
    if request.param:
        try_first(app.router)
    transport = ASGITransport(app)
    async with AsyncClient(transport=transport, base_url="http://test/in") as client:
        yield client


async def test_well_formed_request_is_read_by_the_route_itself(client: AsyncClient) -> None:
    before = Ordinary.read
    found = await client.post("/hot", json={"text": "tea"}, headers={"caller": "ana"})
    assert (found.status_code, found.text) == (200, "'ana tea 2'")
    assert Ordinary.read == before


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (b'{"text": "tea"}', JSON | {"caller": "ana"}),
        (b'{"text": "tea", "limit": 3}', {"content-type": "application/json; charset=utf-8",
                                         "caller": "ana"}),
        (b'{"text": "tea", "limit": "3"}', JSON | {"caller": "ana"}),
        (b'{"text": "tea", "limit": 4}', JSON | {"caller": "ana"}),
        (b'{"limit": 0}', JSON | {"caller": "ana"}),
        (b'{"text": "tea"', JSON | {"caller": "ana"}),
        (b'["tea"]', JSON | {"caller": "ana"}),
        (b"", JSON | {"caller": "ana"}),
        (b"\xff", JSON | {"caller": "ana"}),
        (b'{"text": "tea"}', {"content-type": "text/plain", "caller": "ana"}),
        (b'{"text": "tea"}', JSON),
        (b'{"text": 3}', JSON),
        (b'{"text": "\\ud800"}', JSON | {"caller": "ana"}),
    ],
)  # fmt: skip
async def test_answer_is_the_one_of_an_ordinary_route(
    client: AsyncClient, content: bytes, headers: dict[str, str]
) -> None:
    (hot, often), (ordinary, once) = [
        await _asking(client, path, content, headers) for path in ("/hot", "/ordinary")
    ]
    assert (hot.status_code, hot.text) == (ordinary.status_code, ordinary.text)
    # Who calls is charged each time that it is asked.
    assert often == once


async def _asking(
    client: AsyncClient, path: str, content: bytes, headers: dict[str, str]
) -> tuple[Any, int]:
    """The answer, and how often it was asked who calls."""
    state = client._transport.app.state  # type: ignore[attr-defined]
    before = state.asked
    return await client.post(path, content=content, headers=headers), state.asked - before


@pytest.mark.parametrize("place", ["abc", "a%20c", "abcd"])
@pytest.mark.parametrize("headers", [{"caller": "ana"}, {}])
async def test_parameter_of_the_path_is_read_as_by_an_ordinary_route(
    client: AsyncClient, place: str, headers: dict[str, str]
) -> None:
    before, body = Ordinary.read, {"text": "tea"}
    hot = await client.post(f"/hot/{place}", json=body, headers=headers)
    assert Ordinary.read - before == (place == "abcd")
    ordinary = await client.post(f"/ordinary/{place}", json=body, headers=headers)
    assert (hot.status_code, hot.text) == (ordinary.status_code, ordinary.text)


@pytest.mark.parametrize(
    ("query", "headers", "read"),
    [
        ("", {}, 0),
        ("", {"x-note": "abc"}, 0),
        ("", {"x-note": "abcd"}, 1),
        ("?loud=true", {"x-note": "abc"}, 1),
        ("?loud=maybe", {}, 1),
        ("?other=1", {}, 1),
    ],
)
@pytest.mark.parametrize("known", [{"caller": "ana"}, {}])
async def test_header_and_query_are_read_as_by_an_ordinary_route(
    client: AsyncClient, query: str, headers: dict[str, str], read: int, known: dict[str, str]
) -> None:
    before = Ordinary.read
    content = b'{"text": "tea"}'
    (hot, often), (ordinary, once) = [
        await _asking(client, f"/noted/{kind}{query}", content, JSON | headers | known)
        for kind in ("hot", "oot")
    ]
    assert Ordinary.read - before == read
    assert (hot.status_code, hot.text) == (ordinary.status_code, ordinary.text)
    assert often == once


async def test_schema_is_the_one_of_an_ordinary_route(client: AsyncClient) -> None:
    paths = (await client.get("http://test/openapi.json")).json()["paths"]
    for pair in (("hot", "ordinary"), ("noted/hot", "noted/oot")):
        hot, ordinary = (paths[f"/in/{name}"]["post"] for name in pair)
        assert hot["requestBody"] == ordinary["requestBody"]
        assert hot["responses"] == ordinary["responses"]
        assert hot.get("parameters") == ordinary.get("parameters")


async def nested(name: Annotated[str, Depends(caller)]) -> str:
    return name


async def of_a_dependency(body: Asked, name: Annotated[str, Depends(nested)]) -> Response:
    return Response(body.text + name)


async def of_a_parameter(body: Asked, limit: Annotated[int, Query()]) -> Response:
    return Response(body.text * limit)


async def of_no_body(name: Annotated[str, Depends(caller)]) -> Response:
    return Response(name)


async def demanding(request: Request, note: Annotated[str, Header()]) -> str:
    return note + request.url.path


async def of_a_required_header(body: Asked, name: Annotated[str, Depends(demanding)]) -> Response:
    return Response(body.text + name)


async def of_its_own_header(body: Asked, note: Annotated[str, Header()] = "") -> Response:
    return Response(body.text + note)


@pytest.mark.parametrize(
    "endpoint",
    [of_a_dependency, of_a_parameter, of_no_body, of_a_required_header, of_its_own_header],
)
def test_route_that_takes_more_is_refused(endpoint: Any) -> None:
    with pytest.raises(TypeError):
        APIRouter().add_api_route("/", endpoint, methods=["POST"], route_class_override=HotRoute)


async def test_hot_route_is_tried_before_what_was_included_earlier() -> None:
    class Tried(APIRoute):
        count = 0

        @override
        def matches(self, scope: Any) -> Any:
            Tried.count += 1
            return super().matches(scope)

    first, second = APIRouter(), APIRouter()
    first.add_api_route("/first", answer, methods=["POST"], route_class_override=Tried)
    second.add_api_route("/hot", answer, methods=["POST"], route_class_override=HotRoute)
    app = FastAPI()
    app.state.asked = 0
    app.include_router(first)
    app.include_router(second)
    schema = FastAPI()
    schema.include_router(first)
    schema.include_router(second)
    try_first(app.router)

    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
        found = await client.post("/hot", json={"text": "tea"}, headers={"caller": "ana"})
        refused = await client.get("/hot")

    assert found.text == "'ana tea 2'"
    assert refused.status_code == 405
    # By the other method alone, which no hot route has.
    assert Tried.count == 1
    assert app.openapi() == schema.openapi()


@pytest.mark.parametrize(
    "added", [{"prefix": "/v2"}, {"dependencies": [Depends(caller)]}, {"max_body_size": 100}]
)
def test_router_of_a_hot_route_cannot_be_included_with_more(added: Any) -> None:
    router = APIRouter(prefix="/v1")
    router.add_api_route("/hot", answer, methods=["POST"], route_class_override=HotRoute)
    app, plain = FastAPI(), FastAPI()
    app.include_router(router, **added)
    plain.include_router(router)

    try_first(plain.router)
    with pytest.raises(TypeError, match="included with another"):
        try_first(app.router)
