"""Spans of requests, statements, jobs and calls of models, and what is never in them."""

import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from asgi_lifespan import LifespanManager
from httpx import AsyncClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from app.main import create_app
from app.platform.observability.otel import open_traces
from app.platform.observability.spans import tracing
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.chat_behaviours import entry, extracts
from tests.support.databases import served
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.working import over, working

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
SECRET = "Biscuit the spaniel"


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


@asynccontextmanager
async def opened(dsn: str, **chosen: object) -> AsyncIterator[tuple[Runtime, AsyncClient]]:
    """The whole service with settings of its own, for a tenant of its own."""
    async with open_runtime(Settings(_env_file=None, **chosen), served(dsn)) as runtime:
        application = create_app(nullcontext(runtime))
        owner = await make_tenant(runtime)
        async with LifespanManager(application) as manager:
            application.state.reached = manager.app
            async with client_of(application, owner.key) as client:
                yield runtime, client


def named(spans: list[ReadableSpan], start: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name.startswith(start)]


def texts_of(span: ReadableSpan) -> str:
    """All that is exported of a span but its numbers."""
    return f"{span.name} {dict(span.attributes)} {span.status.description} {span.events}"


def trace_of(span: ReadableSpan) -> str:
    return f"{span.context.trace_id:032x}"


async def test_request_has_a_span_on_the_trace_of_its_caller_with_its_statements(dsn) -> None:
    exporter = InMemorySpanExporter()
    body = {"messages": SECRET, "user_id": "ana-of-the-path", "infer": False}
    async with open_traces(exporter), opened(dsn) as (_, client):
        assert (await client.post("/memories", json=body, headers=CALLER)).status_code == 201
        assert (await client.get("/users/ana-of-the-path", headers=CALLER)).status_code == 200
        assert (await client.get("/users/nobody", headers=CALLER)).status_code == 404
        key = client.headers["Authorization"].removeprefix("Bearer ")

    spans = exporter.get_finished_spans()
    [request] = named(spans, "POST /v1/memories")
    assert request.kind is SpanKind.SERVER
    assert trace_of(request) == TRACE
    assert f"{request.parent.span_id:016x}" == "b7ad6b7169203331"
    assert dict(request.attributes) == {
        "http.request.method": "POST",
        "url.scheme": "http",
        "http.route": "/v1/memories",
        "http.response.status_code": 201,
    }
    statements = [
        span for span in spans if span.parent and span.parent.span_id == request.context.span_id
    ]
    assert {one.attributes["db.system.name"] for one in statements} == {"postgresql"}
    assert {one.kind for one in statements} == {SpanKind.CLIENT}
    assert named(statements, "COMMIT")
    assert all(request.start_time <= one.start_time <= one.end_time for one in statements)
    assert [
        one.attributes["http.response.status_code"] for one in named(spans, "GET /v1/users/")
    ] == [200, 404]
    told = " ".join(map(texts_of, spans))
    for content in (SECRET, "ana-of-the-path", key, key.split("_")[-1], "Biscuit"):
        assert content not in told


async def test_probes_and_unknown_paths_tell_nothing(dsn) -> None:
    exporter = InMemorySpanExporter()
    async with open_traces(exporter), opened(dsn) as (_, client):
        assert (await client.get("http://test/livez")).status_code == 200
        assert (await client.get("/no/such/ana")).status_code == 404

    [span] = exporter.get_finished_spans()
    assert (span.name, span.attributes["http.response.status_code"]) == ("GET", 404)
    assert "ana" not in texts_of(span)


async def test_job_goes_on_the_trace_of_the_request_that_ordered_it(dsn, server) -> None:
    server.reset()
    server.chat.script(
        extracts(lambda found: [entry(f"The dog is {SECRET}.", found[0]["id"], confidence=0.9)])
    )
    exporter = InMemorySpanExporter()
    chosen = {
        "openai_base_url": server.base_url,
        "openai_api_key": "key-of-the-provider",
        "extraction_model": "openai/reader",
    }
    async with (
        open_traces(exporter),
        opened(dsn, **chosen) as (runtime, client),
        working(runtime, dsn),
    ):
        body = {"messages": f"My dog is {SECRET}.", "user_id": "ana"}
        ordered = await client.post("/memories?async=true", json=body, headers=CALLER)
        assert ordered.status_code == 202, ordered.text
        job = await over(client, ordered.json()["job_id"])
        assert job["status"] == "succeeded"
        assert "traceparent" not in str(job)

    spans = exporter.get_finished_spans()
    [request] = named(spans, "POST /v1/memories")
    [job_span] = [one for one in named(spans, "process infer") if trace_of(one) == TRACE]
    assert job_span.parent.span_id == request.context.span_id
    assert job_span.kind is SpanKind.CONSUMER
    assert job_span.attributes["messaging.message.id"] == job["job_id"]
    [call] = [one for one in named(spans, "chat reader") if trace_of(one) == TRACE]
    assert call.parent.span_id == job_span.context.span_id
    assert call.attributes["gen_ai.operation.name"] == "chat"
    assert call.attributes["gen_ai.request.model"] == "reader"
    assert call.attributes["gen_ai.usage.input_tokens"] > 0
    assert call.attributes["gen_ai.usage.output_tokens"] > 0
    told = " ".join(map(texts_of, spans))
    for content in (SECRET, "My dog", "key-of-the-provider", "gpt says"):
        assert content not in told


async def test_failure_is_told_by_its_class_alone() -> None:
    exporter = InMemorySpanExporter()
    async with open_traces(exporter) as traces:
        with pytest.raises(ValueError, match=SECRET), traces.model_call("chat", "m"):
            raise ValueError(SECRET)

        async def work() -> None:
            raise RuntimeError(SECRET)

        with pytest.raises(RuntimeError):
            await traces.job("extract", "job_1", 1, "no trace at all", work)
    assert tracing() is None

    call, job = exporter.get_finished_spans()
    assert (call.attributes["error.type"], job.attributes["error.type"]) == (
        "ValueError",
        "RuntimeError",
    )
    assert job.parent is None
    for span in (call, job):
        assert span.status.status_code is StatusCode.ERROR
        assert SECRET not in texts_of(span)


class Receiver(BaseHTTPRequestHandler):
    """Keeps what an exporter of OTLP sends."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, dict(self.headers), body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_given: object) -> None:
        """Nothing."""


@contextmanager
def receiver() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as running:
        running.received = []
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()


async def test_standard_variables_say_where_spans_go_over_otlp(dsn) -> None:
    with receiver() as running:
        address = f"http://127.0.0.1:{running.server_address[1]}"
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": address,
            "OTEL_EXPORTER_OTLP_HEADERS": "x-team=memory",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
        }
        os.environ |= variables
        try:
            async with opened(dsn, tracing=True) as (_, client):
                await client.get("/users", headers=CALLER)
        finally:
            for name in variables:
                del os.environ[name]
        received = list(running.received)

    spans, resources = [], []
    for path, headers, body in received:
        assert path == "/v1/traces"
        assert headers["x-team"] == "memory"
        for part in ExportTraceServiceRequest.FromString(body).resource_spans:
            resources.append({one.key: one.value.string_value for one in part.resource.attributes})
            spans += [span for scope in part.scope_spans for span in scope.spans]
    assert {one["service.name"] for one in resources} == {"kemem"}
    assert {one["deployment.environment.name"] for one in resources} == {"test"}
    [request] = [span for span in spans if span.name == "GET /v1/users"]
    assert request.trace_id.hex() == TRACE
    assert any(span.parent_span_id == request.span_id for span in spans)


async def test_without_the_setting_nothing_is_wrapped(dsn) -> None:
    async with opened(dsn) as (runtime, client):
        assert (await client.get("/users", headers=CALLER)).status_code == 200
        assert tracing() is None
        assert not create_app(nullcontext(runtime))._native_telemetry.enabled()
        connection = await runtime.database._units.engine.connect()
        driver = (await connection.get_raw_connection()).driver_connection
        assert not driver._query_loggers
        await connection.close()
        assert not runtime.database._units.engine.sync_engine.dispatch.before_cursor_execute
