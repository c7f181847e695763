"""A real HTTP server that speaks OpenAI's dialect, and misbehaves on request.

The SDK is built on httpx2, which no double intercepts, so tests point `base_url` here. A
behaviour takes the parsed request and returns an answer; `script` queues behaviours for the
next requests, `otherwise` is used when the queue is empty. Chat completions have a queue of
their own (`server.chat`) and behaviours in `chat_behaviours`.
"""

import asyncio
import hashlib
import json
import socket
import ssl
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import uvicorn
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

NATIVE_DIMENSION = 64
"""In which the server answers for a model nobody else knows."""

_TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody: nothing here is encrypted, and reading all authorities takes 25 ms a client."""

_NATIVE = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072}


@dataclass(frozen=True)
class Request:
    """One call as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: Any, status: int = 200, headers: Mapping[str, str] | None = None):
        return cls(status, json.dumps(content).encode(), headers or {})


class Behaviour(Protocol):
    def __call__(self, request: Request) -> Awaitable[Answer]: ...


def vector_of(text: str, dimension: int) -> list[float]:
    """The vector the server has for `text`; not of unit length, on purpose."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return (np.random.default_rng(seed).standard_normal(dimension) * 3).tolist()


def dimension_of(request: Request) -> int:
    native = _NATIVE.get(request.body["model"], NATIVE_DIMENSION)
    return request.body.get("dimensions", native)


def rows_of(request: Request, dimension: int | None = None) -> list[dict[str, Any]]:
    dimension = dimension or dimension_of(request)
    return [
        {"object": "embedding", "index": index, "embedding": vector_of(text, dimension)}
        for index, text in enumerate(request.texts)
    ]


def listed(rows: list[dict[str, Any]]) -> Answer:
    return reporting({}, rows)


def reporting(usage: Any, rows: list[dict[str, Any]]) -> Answer:
    return Answer.of({"object": "list", "model": "m", "data": rows, "usage": usage})


def failed(status: int, message: str, code: str, headers: Mapping[str, str] | None = None):
    return Answer.of({"error": {"message": message, "code": code}}, status, headers)


# Behaviours, to be queued with `script` or set with `otherwise`.


async def good(request: Request) -> Answer:
    return listed(rows_of(request))


def charging(tokens: int) -> Behaviour:
    """Counts so many tokens for each text, as providers do."""

    async def behave(request: Request) -> Answer:
        total = tokens * len(request.texts)
        return reporting({"prompt_tokens": total, "total_tokens": total}, rows_of(request))

    return behave


def slow(seconds: float) -> Behaviour:
    async def behave(request: Request) -> Answer:
        await asyncio.sleep(seconds)
        return await good(request)

    return behave


def refusal(
    status: int, *, message: str = "no", code: str = "no", retry_after: str | None = None
) -> Behaviour:
    async def behave(_: Request) -> Answer:
        headers = {} if retry_after is None else {"retry-after": retry_after}
        return failed(status, message, code, headers)

    return behave


def in_dimension(dimension: int) -> Behaviour:
    """Answers in `dimension`, whatever was asked, as servers without the argument do."""

    async def behave(request: Request) -> Answer:
        return listed(rows_of(request, dimension))

    return behave


async def without_dimensions(request: Request) -> Answer:
    """A strict server, which refuses the argument `dimensions` for every model."""
    if "dimensions" in request.body:
        return failed(400, "model does not support matryoshka representation", "bad_request")
    return await good(request)


async def shuffled(request: Request) -> Answer:
    return listed(rows_of(request)[::-1])


async def one_short(request: Request) -> Answer:
    return listed(rows_of(request)[:-1])


async def all_numbered_zero(request: Request) -> Answer:
    return listed([{**row, "index": 0} for row in rows_of(request)])


async def ragged(request: Request) -> Answer:
    first, *rest = rows_of(request)
    return listed([{**first, "embedding": first["embedding"][:-1]}, *rest])


async def not_finite(request: Request) -> Answer:
    rows = rows_of(request)
    rows[-1]["embedding"][0] = float("nan")
    return listed(rows)


async def zeros(request: Request) -> Answer:
    return listed([{**row, "embedding": [0.0] * dimension_of(request)} for row in rows_of(request)])


async def not_json(_: Request) -> Answer:
    return Answer(200, b'{"data": [{"index": 0, "embed')


async def a_web_page(_: Request) -> Answer:
    return Answer(200, b"<html>hello</html>", {"content-type": "text/html"})


async def a_plain_object(_: Request) -> Answer:
    return Answer.of({"status": "ok"})


def completion(
    text: str | None,
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    usage: Mapping[str, Any] | None = None,
) -> Answer:
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return Answer.of(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}
            if usage is None
            else usage,
        }
    )


async def nothing(_: Request) -> Answer:
    """A model that found nothing, whatever it was asked for."""
    return completion('{"reflection": "", "memories": [], "experience": null, "decisions": []}')


class Endpoint:
    """One path of the server: what arrived there, and what it will answer."""

    def __init__(self, default: Behaviour) -> None:
        self._default = default
        self.reset()

    def reset(self) -> None:
        self.requests: list[Request] = []
        self.most_at_once = 0
        self.otherwise: Behaviour = self._default
        self._script: deque[Behaviour] = deque()
        # Replaced, not emptied: requests a test gave up on may still leave the old one.
        self._under_way: list[Request] = []

    def script(self, *behaviours: Behaviour) -> None:
        """Use these for the next requests, one each."""
        self._script.extend(behaviours)

    async def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        under_way = self._under_way
        under_way.append(request)
        self.most_at_once = max(self.most_at_once, len(under_way))
        try:
            behave = self._script.popleft() if self._script else self.otherwise
            return await behave(request)
        finally:
            under_way.pop()


class OpenAIServer(Endpoint):
    """What a test sees of the server. Behaviours run on the server's own loop.

    The embeddings are its own; `chat` is for completions.
    """

    def __init__(self, address: str) -> None:
        self.base_url = f"{address}/v1"
        self.chat = Endpoint(nothing)
        super().__init__(good)

    def reset(self) -> None:
        super().reset()
        self.chat.reset()

    @property
    def batch_sizes(self) -> list[int]:
        return [len(request.texts) for request in self.requests]

    def client(self, *, timeout: float = 5.0, max_retries: int = 0) -> AsyncOpenAI:
        return AsyncOpenAI(
            api_key="sk-secret",
            base_url=self.base_url,
            timeout=timeout,
            max_retries=max_retries,
            http_client=DefaultAsyncHttpxClient(verify=_TRUST),
        )

    def at(self, path: str) -> Endpoint | None:
        return {"/v1/embeddings": self, "/v1/chat/completions": self.chat}.get(path)


Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def _asgi(server: OpenAIServer) -> Callable[[dict[str, Any], Receive, Send], Awaitable[None]]:
    async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        request = Request(scope["path"], headers, json.loads(body or b"{}"))
        endpoint = server.at(request.path)
        missing = failed(404, "no such path", "not_found")
        answer = missing if endpoint is None else await endpoint.answer(request)
        sent = {"content-type": "application/json", **answer.headers}
        encoded = [(key.encode(), value.encode()) for key, value in sent.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": answer.body})

    return app


@contextmanager
def openai_server() -> Iterator[OpenAIServer]:
    """A server on a free port of this machine, in a thread of its own.

    A thread, so that a slow behaviour or a blocked loop of the code under test does not stop
    the server too.
    """
    # The protocol is named, because asyncio switches off Nagle's algorithm only where it is:
    # an answer takes 2 ms instead of 45.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = OpenAIServer(f"http://127.0.0.1:{listener.getsockname()[1]}")
        config = uvicorn.Config(
            _asgi(server),
            log_config=None,
            access_log=False,
            lifespan="off",
            loop="asyncio",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        runner = uvicorn.Server(config)
        thread = threading.Thread(target=runner.run, args=([listener],), daemon=True)
        # The listener is open already: a request made before the server has started waits.
        thread.start()
        try:
            yield server
        finally:
            runner.should_exit = True
            thread.join(timeout=10)
            assert not thread.is_alive()
