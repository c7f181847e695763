"""A real HTTP server that scores documents as Cohere, Jina and TEI do, and fails on request.

The behaviours of `flaky_server` can be queued with `script`; when the queue is empty it scores:
a document as `scores` says, else 0.1. It reads the request that came last, so requests must
not overlap.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.flaky_server import Behaviour, FlakyServer, Seen, flaky_server, says


def rows(*scores: float) -> list[dict[str, Any]]:
    """Rows of an answer, one per document, best first."""
    found = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return sorted(found, key=lambda row: -row["relevance_score"])


class RerankServer:
    """What a test sees of the server."""

    def __init__(self, server: FlakyServer) -> None:
        self._server = server
        self.scores: dict[str, float] = {}
        server.otherwise = self.score

    @property
    def root(self) -> str:
        return self._server.address

    @property
    def address(self) -> str:
        return f"{self.root}/v1/rerank"

    @property
    def requests(self) -> list[Seen]:
        return self._server.requests

    @property
    def bodies(self) -> list[Any]:
        return [request.json for request in self.requests]

    @property
    def otherwise(self) -> Behaviour:
        return self._server.otherwise

    @otherwise.setter
    def otherwise(self, behaviour: Behaviour) -> None:
        self._server.otherwise = behaviour

    def script(self, *behaviours: Behaviour) -> None:
        """Use these for the next requests, one each."""
        self._server.script(*behaviours)

    def handle(self, kind: str = "http", model: str = "a-model") -> str:
        """What MEMORY_RERANK_MODEL says to mean this server."""
        return f"{kind}/{model}@{self.address}"

    def score(self, to: BaseHTTPRequestHandler) -> None:
        body = self.bodies[-1]
        if "texts" in body:
            found = rows(*(self.scores.get(text, 0.1) for text in body["texts"]))
            says([{"index": row["index"], "score": row["relevance_score"]} for row in found])(to)
        else:
            found = rows(*(self.scores.get(text, 0.1) for text in body["documents"]))
            says({"id": "1", "results": found[: body["top_n"]], "meta": {"tokens": 3}})(to)


@contextmanager
def rerank_server() -> Iterator[RerankServer]:
    with flaky_server() as server:
        yield RerankServer(server)
