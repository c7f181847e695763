"""The HTTP reranker against a real server that misbehaves on request."""

import asyncio
import json
import math
import socket
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language.llm.http_reranker import LONGEST_TEXT, HTTPReranker, unit_scores
from app.language.llm.reranker import RERANK_CANDIDATES, RerankUnavailableError
from app.language.llm.reranker_catalogue import connect_reranker
from tests.support.flaky_server import (
    Behaviour,
    cuts_off,
    flaky_server,
    hangs_up,
    says,
    sends,
    slowly,
)
from tests.support.patience import PATIENCE, until_asked
from tests.support.rerank_server import RerankServer, rerank_server, rows

KEY = "rk-secret"
QUERY = "my diary"
DOCUMENTS = ["She drinks green tea.", "她养了一只猫。", "The cat is called 小花 🐈."]
SECRETS = (KEY, QUERY, "green tea", "她养了", "hush")


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with rerank_server() as server:
        yield server


@asynccontextmanager
async def connected(
    handle: str, *, key: str | None = KEY, seconds: float = PATIENCE
) -> AsyncIterator[HTTPReranker]:
    reranker = connect_reranker(handle, api_key=key, timeout=timedelta(seconds=seconds))
    try:
        yield reranker
    finally:
        await reranker.aclose()


@pytest.fixture
async def reranker(server: RerankServer) -> AsyncIterator[HTTPReranker]:
    async with connected(server.handle()) as reranker:
        yield reranker


async def failure(reranker: HTTPReranker) -> RerankUnavailableError:
    with pytest.raises(RerankUnavailableError) as caught:
        await reranker.rerank(QUERY, DOCUMENTS)
    return caught.value


class TestAsking:
    async def test_scores_stand_in_the_order_of_the_documents(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        server.scores = dict(zip(DOCUMENTS, (0.2, 0.97, 0.4), strict=True))

        assert await reranker.rerank(QUERY, DOCUMENTS) == [0.2, 0.97, 0.4]

    async def test_the_key_goes_as_a_bearer_token(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        await reranker.rerank(QUERY, DOCUMENTS)

        [request] = server.requests
        assert (request.method, request.path) == ("POST", "/v1/rerank")
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert headers["authorization"] == f"Bearer {KEY}"
        assert headers["content-type"] == "application/json"
        assert headers["accept-encoding"] == "identity"

    async def test_without_a_key_there_is_no_header(self, server: RerankServer):
        async with connected(server.handle(), key=None) as reranker:
            await reranker.rerank(QUERY, DOCUMENTS)

        assert "authorization" not in {name.lower() for name in server.requests[0].headers}

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("cohere", {"model": "a-model", "documents": DOCUMENTS, "top_n": 3}),
            ("http", {"model": "a-model", "documents": DOCUMENTS, "top_n": 3}),
            (
                "jina",
                {
                    "model": "a-model", "documents": DOCUMENTS, "top_n": 3,
                    "return_documents": False,
                },
            ),
            ("tei", {"texts": DOCUMENTS, "raw_scores": False, "truncate": True}),
        ],
    )  # fmt: skip
    async def test_each_family_is_asked_in_its_own_words(
        self, server: RerankServer, kind: str, body: dict[str, Any]
    ):
        server.scores = {DOCUMENTS[2]: 0.9}
        async with connected(server.handle(kind)) as reranker:
            assert await reranker.rerank(QUERY, DOCUMENTS) == [0.1, 0.1, 0.9]

        assert server.bodies == [{"query": QUERY} | body]

    @pytest.mark.parametrize(("count", "calls"), [(31, [31]), (32, [32]), (33, [32, 1])])
    async def test_tei_is_asked_for_as_many_as_it_takes(
        self, server: RerankServer, count: int, calls: list[int]
    ):
        documents = [f"Document {number}." for number in range(count)]
        server.scores = {text: number / 100 for number, text in enumerate(documents)}
        async with connected(server.handle("tei")) as reranker:
            scores = await reranker.rerank(QUERY, documents)

        assert scores == [number / 100 for number in range(count)]
        assert [len(body["texts"]) for body in server.bodies] == calls

    async def test_no_more_than_the_candidates_are_taken(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        documents = [f"Document {number}." for number in range(RERANK_CANDIDATES + 1)]

        for count in (RERANK_CANDIDATES - 1, RERANK_CANDIDATES):
            assert len(await reranker.rerank(QUERY, documents[:count])) == count
        with pytest.raises(ValueError, match="51 documents"):
            await reranker.rerank(QUERY, documents)
        assert [len(body["documents"]) for body in server.bodies] == [49, 50]

    @pytest.mark.parametrize("letter", ["a", "茶", "🐈"])
    async def test_a_long_text_is_cut(
        self, server: RerankServer, reranker: HTTPReranker, letter: str
    ):
        texts = [letter * (LONGEST_TEXT + more) for more in (-1, 0, 1)]

        await reranker.rerank(texts[2], texts)

        [body] = server.bodies
        assert body["query"] == letter * LONGEST_TEXT
        assert body["documents"] == [texts[0], texts[1], texts[1]]

    async def test_blank_documents_are_not_sent_and_come_last(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        assert await reranker.rerank(QUERY, ["", "tea", " \n", "coffee"]) == [0, 0.1, 0, 0.1]
        assert server.bodies[0]["documents"] == ["tea", "coffee"]

    @pytest.mark.parametrize(("query", "documents"), [(QUERY, []), (QUERY, [" "]), (" ", ["tea"])])
    async def test_where_nothing_is_said_nobody_is_asked(
        self, server: RerankServer, reranker: HTTPReranker, query: str, documents: list[str]
    ):
        assert await reranker.rerank(query, documents) == [0.0] * len(documents)
        assert server.requests == []

    async def test_half_a_character_does_not_stop_the_call(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        assert await reranker.rerank("a\ud800b", ["\udfff tea"]) == [0.1]
        assert server.bodies[0] == {
            "model": "a-model", "query": "a?b", "documents": ["? tea"], "top_n": 1,
        }  # fmt: skip

    async def test_calls_share_the_connections_and_may_overlap(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        server.otherwise = slowly(0.05, says({"results": rows(0.3, 0.2, 0.1)}))

        found = await asyncio.gather(*(reranker.rerank(QUERY, DOCUMENTS) for _ in range(8)))

        assert found == [[0.3, 0.2, 0.1]] * 8

    async def test_reranker_is_named_without_its_address(self, server: RerankServer):
        async with connected(server.handle("http", "BAAI/bge-reranker-v2-m3")) as reranker:
            assert reranker.name == "http/BAAI/bge-reranker-v2-m3"


class TestAnswers:
    async def test_bare_rows_of_tei_are_understood_of_anybody(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        server.script(says([{"index": index, "score": 0.5 + index / 10} for index in (2, 0, 1)]))

        assert await reranker.rerank(QUERY, DOCUMENTS) == [0.5, 0.6, 0.7]

    async def test_whole_numbers_and_more_members_are_fine(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        server.script(
            says({"results": [
                {"index": 0, "relevance_score": 1, "document": {"text": DOCUMENTS[0]}},
                {"index": 2, "relevance_score": 0, "document": None},
                {"index": 1, "relevance_score": 0.25},
            ], "usage": {"total_tokens": 9}})
        )  # fmt: skip

        assert await reranker.rerank(QUERY, DOCUMENTS) == [1, 0.25, 0]

    async def test_a_document_that_is_left_out_comes_last(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        server.script(says({"results": [{"index": 1, "relevance_score": 0.2}]}))
        server.script(says({"results": [{"index": 1, "relevance_score": -9.0}]}))

        assert await reranker.rerank(QUERY, DOCUMENTS) == [0, 0.2, 0]
        [first, second, third] = await reranker.rerank(QUERY, DOCUMENTS)
        assert first == third == 0 < second

    async def test_logits_become_probabilities(self, server: RerankServer, reranker: HTTPReranker):
        server.script(says({"results": rows(7.74, -11.02, 0.5)}))

        scores = await reranker.rerank(QUERY, DOCUMENTS)

        assert scores == pytest.approx([1 / (1 + math.exp(-x)) for x in (7.74, -11.02, 0.5)])

    @pytest.mark.parametrize(
        ("behaviour", "words"),
        [
            (sends(b'{"results": [{"index": 0, "relevance_score": 0.'), "not a list"),
            (sends(b""), "not a list"),
            (sends(b"<html>hush</html>"), "not a list"),
            (sends(b"\xff\xfe"), "not a list"),
            (sends(b"[" * 50_000), "not a list"),
            (says({"error": "hush"}), "not a list"),
            (says({"results": None}), "not a list"),
            (says({"results": []}), "no scores for 3"),
            (says([]), "no scores for 3"),
            (says({"results": rows(0.1, 0.2, 0.3, 0.4)}), "numbered"),
            (says([{"index": 3, "score": 0.1}]), "numbered"),
            (says([{"index": 10**30, "score": 0.1}]), "numbered"),
            (says([{"index": 1, "score": 0.1}, {"index": 1, "score": 0.2}]), "numbered"),
            (says([{"index": -1, "score": 0.1}]), "not a list"),
            (says([{"index": 0.5, "score": 0.1}]), "not a list"),
            (says([{"index": "0", "score": 0.1}]), "not a list"),
            (says([{"index": True, "score": 0.1}]), "not a list"),
            (says([{"index": None, "score": 0.1}]), "not a list"),
            (says([{"score": 0.1}]), "not a list"),
            (says([{"index": 0}]), "not a list"),
            (says([{"index": 0, "score": "0.1"}]), "not a list"),
            (says([{"index": 0, "score": True}]), "not a list"),
            (says([{"index": 0, "score": None}]), "not a list"),
            (says([{"index": 0, "score": math.nan}]), "not a list"),
            (says([{"index": 0, "score": math.inf}]), "not a list"),
            (says([{"index": 0, "score": -math.inf}]), "not a list"),
            (sends(b'[{"index": 0, "score": 1e999}]'), "not a list"),
            (sends(b'[{"index": 0, "score": 1' + b"0" * 400 + b"}]"), "not a list"),
            (says({"results": rows(0.1, 0.2, 0.3)}, Content_Encoding="gzip"), None),
        ],
    )
    async def test_one_that_does_not_fit_is_refused(
        self,
        server: RerankServer,
        reranker: HTTPReranker,
        behaviour: Behaviour,
        words: str | None,
    ):
        server.otherwise = behaviour
        if words is None:
            # Whatever the header says, the bytes are read as they are.
            assert await reranker.rerank(QUERY, DOCUMENTS) == [0.1, 0.2, 0.3]
            return

        error = await failure(reranker)

        assert error.members == {"reason": "bad_answer"}
        assert words in error.detail
        assert len(server.requests) == 1

    async def test_one_may_be_as_long_as_the_documents_sent_back(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        await reranker.rerank(QUERY, DOCUMENTS)
        most = 64 * 1024 + 8 * len(server.requests[0].body)
        fine = json.dumps(rows(0.1, 0.2, 0.3)).encode()

        for size in (most - 1, most):
            server.script(sends(fine.ljust(size)))
            assert await reranker.rerank(QUERY, DOCUMENTS) == [0.1, 0.2, 0.3]
        server.script(sends(fine.ljust(most + 1)))
        error = await failure(reranker)

        assert (error.reason, f"{most} bytes" in error.detail) == ("bad_answer", True)

    async def test_one_without_an_end_is_not_read_to_it(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        sent = 0

        def endless(to: BaseHTTPRequestHandler) -> None:
            nonlocal sent
            to.send_response(200)
            to.end_headers()
            for _ in range(10_000):
                to.wfile.write(b" " * 10_000)
                to.wfile.flush()
                sent += 10_000

        server.script(endless)
        error = await failure(reranker)

        assert error.reason == "bad_answer"
        # The rest stays in the buffers of the two sockets, at most.
        assert sent < 20_000_000


class TestScores:
    @pytest.mark.parametrize(
        ("told", "scores"),
        [
            ([0.0, 1.0, 0.5], [0.0, 1.0, 0.5]),
            ([-0.0009, 1.0009], [0.0, 1.0]),
            ([1.002, 0.0], [1 / (1 + math.exp(-1.002)), 0.5]),
            ([-0.002, 0.5], [1 / (1 + math.exp(0.002)), 1 / (1 + math.exp(-0.5))]),
            ([-1e308, 1e308], [0.0, 1.0]),
            ([], []),
        ],
    )
    def test_what_lies_in_0_to_1_stands_and_the_rest_is_squashed(
        self, told: list[float], scores: list[float]
    ):
        assert unit_scores(told) == pytest.approx(scores)

    @given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=50))
    def test_they_are_in_0_to_1_and_keep_their_order(self, told: list[float]):
        scores = unit_scores(told)

        assert all(0 <= score <= 1 for score in scores)
        in_order = [score for _, score in sorted(zip(told, scores, strict=True))]
        assert in_order == sorted(scores)


class TestFailures:
    @pytest.mark.parametrize(
        ("status", "reason"),
        [
            (400, "refused"), (401, "authentication"), (402, "quota_exhausted"),
            (403, "authentication"), (404, "model_not_found"), (408, "timeout"),
            (413, "refused"), (422, "refused"), (429, "rate_limited"), (500, "provider_error"),
            (503, "provider_error"), (504, "timeout"), (302, "refused"), (304, "refused"),
        ],
    )  # fmt: skip
    async def test_a_status_is_told_by_its_reason_and_not_tried_again(
        self, server: RerankServer, reranker: HTTPReranker, status: int, reason: str
    ):
        server.otherwise = says({"message": f"hush {KEY} {QUERY}"}, status)

        error = await failure(reranker)

        assert error.members == {"reason": reason, "provider_status": status}
        assert len(server.requests) == 1

    async def test_a_redirect_is_not_followed_to_anybody(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        with flaky_server() as elsewhere:
            for status in (301, 302, 303, 307, 308):
                for host in (elsewhere.address, server.root):
                    server.otherwise = says({}, status, Location=f"{host}/v2/rerank")
                    assert (await failure(reranker)).reason == "refused"

            assert elsewhere.requests == []
        assert {request.path for request in server.requests} == {"/v1/rerank"}

    async def test_one_that_is_not_there_is_a_connection_failure(self):
        # Port 9 (discard) of this machine, where nothing listens.
        async with connected("http/m@http://127.0.0.1:9/rerank") as reranker:
            assert (await failure(reranker)).reason == "connection"

    @pytest.mark.parametrize("behaviour", [hangs_up, cuts_off])
    async def test_a_connection_that_is_cut_is_tried_once_more(
        self, server: RerankServer, reranker: HTTPReranker, behaviour: Behaviour
    ):
        server.script(behaviour)
        assert await reranker.rerank(QUERY, DOCUMENTS) == [0.1, 0.1, 0.1]
        assert len(server.requests) == 2

        server.script(behaviour, behaviour)
        assert (await failure(reranker)).reason == "connection"
        assert len(server.requests) == 4

    async def test_a_server_gone_in_the_pause_between_two_searches_is_found_again(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        def last_words(to: BaseHTTPRequestHandler) -> None:
            server.score(to)
            to.wfile.flush()
            hangs_up(to)

        server.script(last_words)
        assert await reranker.rerank(QUERY, DOCUMENTS) == [0.1, 0.1, 0.1]
        await asyncio.sleep(0.05)
        assert await reranker.rerank(QUERY, DOCUMENTS) == [0.1, 0.1, 0.1]

    @pytest.mark.parametrize(
        "behaviour", [says({"m": f"hush {KEY}"}, 401), sends(b"hush"), hangs_up, cuts_off]
    )
    async def test_secrets_and_words_are_in_nothing_that_is_shown(
        self, server: RerankServer, reranker: HTTPReranker, behaviour: Behaviour
    ):
        server.otherwise = behaviour

        error = await failure(reranker)

        shown = [repr(error), error.detail, json.dumps(error.members), repr(reranker)]
        shown += traceback.format_exception(error)
        # Lines of this file are a part of a traceback.
        frames = [line for line in shown if "test_llm_reranker.py" not in line]
        assert [line for line in frames for secret in SECRETS if secret in line] == []


class TestDeadline:
    async def timed(self, reranker: HTTPReranker) -> tuple[float, str | None]:
        started = time.perf_counter()
        reason = None
        try:
            await reranker.rerank(QUERY, DOCUMENTS)
        except RerankUnavailableError as error:
            reason = error.reason
        return time.perf_counter() - started, reason

    @pytest.mark.parametrize(
        ("pause", "seconds", "reason"),
        [(0.2, PATIENCE, None), (8, 0.4, "timeout")],
    )
    async def test_an_answer_comes_before_it_or_not_at_all(
        self, server: RerankServer, pause: float, seconds: float, reason: str | None
    ):
        server.otherwise = slowly(pause, server.score)
        async with connected(server.handle(), seconds=seconds) as reranker:
            took, found = await self.timed(reranker)

        assert found == reason
        assert min(pause, seconds) - 0.1 < took < (8 if reason else PATIENCE)

    async def test_deadline_holds_for_an_answer_that_comes_drop_by_drop(self, server: RerankServer):
        def drips(to: BaseHTTPRequestHandler) -> None:
            to.send_response(200)
            to.end_headers()
            while True:
                to.wfile.write(b" ")
                to.wfile.flush()
                time.sleep(0.05)

        server.otherwise = drips
        async with connected(server.handle(), seconds=0.5) as reranker:
            # Nobody who waits for the end of the answer gets there.
            _, reason = await self.timed(reranker)

        assert reason == "timeout"

    async def test_deadline_holds_over_both_tries(self, server: RerankServer):
        server.script(slowly(0.3, hangs_up))
        server.otherwise = slowly(8, server.score)
        async with connected(server.handle(), seconds=2) as reranker:
            took, reason = await self.timed(reranker)

        # A deadline of each try would end later than that of both.
        assert (reason, 1.9 < took < 8) == ("timeout", True)
        assert len(server.requests) == 2

    async def test_deadline_holds_over_the_calls_of_one_reranking(self, server: RerankServer):
        server.otherwise = slowly(0.4, server.score)
        async with connected(server.handle("tei"), seconds=0.6) as reranker:
            with pytest.raises(RerankUnavailableError, match="timeout"):
                await reranker.rerank(QUERY, ["tea"] * 33)

    async def test_deadline_holds_for_a_host_that_never_answers(self):
        # A full queue of connections is as silent as a host behind a dropping firewall.
        with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
            port = listener.getsockname()[1]
            waiting = [socket.socket() for _ in range(4)]
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
            async with connected(f"http/m@http://127.0.0.1:{port}/r", seconds=0.5) as reranker:
                async with asyncio.timeout(PATIENCE):
                    _, reason = await self.timed(reranker)
            for one in waiting:
                one.close()

        assert reason == "timeout"

    async def test_deadline_leaves_the_reranker_fit_for_the_next_search(self, server: RerankServer):
        server.script(slowly(5, server.score))
        async with connected(server.handle(), seconds=1.5) as reranker:
            assert (await self.timed(reranker))[1] == "timeout"
            assert await reranker.rerank(QUERY, DOCUMENTS) == [0.1, 0.1, 0.1]

    async def test_whoever_leaves_earlier_stops_the_call(
        self, server: RerankServer, reranker: HTTPReranker
    ):
        server.script(slowly(5, server.score))
        leaving = asyncio.create_task(reranker.rerank(QUERY, DOCUMENTS))
        await until_asked(server)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving

        assert await reranker.rerank(QUERY, DOCUMENTS) == [0.1, 0.1, 0.1]


async def test_closing_is_safe_to_repeat(server: RerankServer):
    async with connected(server.handle()) as reranker:
        await reranker.rerank(QUERY, DOCUMENTS)
        await reranker.aclose()
