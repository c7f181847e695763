"""Spans of OpenTelemetry for requests, statements, jobs and calls of models.

Names and attributes are those of its semantic conventions. None holds content: no path and no
query of a request, no text or parameter of a statement, no prompt, no answer, no key, and of an
error its class alone. What OTEL_* variables say is read by the SDK.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import time_ns
from typing import Any, Final

import asyncpg
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine
from typing_extensions import override

from app.platform.observability.spans import (
    CARRIED,
    TRACEPARENT,
    ModelSpan,
    Receive,
    Scope,
    Send,
    Serve,
    Tracing,
    in_force,
)
from app.platform.version import VERSION

_W3C: Final = TraceContextTextMapPropagator()
_W3C_HEADERS: Final = frozenset({b"traceparent", b"tracestate"})
_PROBES: Final = frozenset({"/livez", "/readyz", "/metrics"})
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_OPERATION: Final = re.compile(r"\s*([A-Za-z]+)")
_TABLE: Final = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+([a-z_]+)\b(?!\s*\()")
_LOOKED_AT: Final = 2000
"""Characters of a statement in which its table is looked for."""


@asynccontextmanager
async def open_traces(exporter: SpanExporter | None = None) -> AsyncIterator[Tracing]:
    """Make spans for the time of the block, and send those that are left at its end.

    Args:
        exporter: where they go; over OTLP to where the OTEL_* variables say when left out.

    """
    if exporter is None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter()
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "kemem"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        with in_force(made := OtelTracing(provider.get_tracer("kemem", VERSION))):
            yield made
    finally:
        await asyncio.to_thread(provider.shutdown)


class OtelTracing(Tracing):
    """Makes spans with one tracer."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    @override
    async def request(self, serve: Serve, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in _PROBES:
            await serve(scope, receive, send)
            return
        given = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in _W3C_HEADERS
        }
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        with self._span(method, SpanKind.SERVER, _W3C.extract(given, Context())) as span:
            span.set_attributes({"http.request.method": method, "url.scheme": scope["scheme"]})
            status = await serve(scope, receive, send)
            route = getattr(scope.get("route"), "path", None)
            if route is not None:
                # Of a mounted application too; never the path itself, which holds ids.
                route = scope.get("root_path", "") + route
                span.update_name(f"{method} {route}")
                span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_status(StatusCode.ERROR)
                span.set_attribute("error.type", str(status))

    @override
    async def job(
        self,
        kind: str,
        job_id: str,
        attempts: int,
        traceparent: str | None,
        work: Callable[[], Awaitable[Any]],
    ) -> Any:
        parent = _W3C.extract({CARRIED: traceparent}, Context()) if traceparent else Context()
        with self._span(f"process {kind}", SpanKind.CONSUMER, parent) as span:
            span.set_attributes(
                {
                    "messaging.system": "kemem",
                    "messaging.operation.type": "process",
                    "messaging.operation.name": "process",
                    "messaging.destination.name": kind,
                    "messaging.message.id": job_id,
                    "kemem.job.attempt": attempts,
                }
            )
            return await work()

    @override
    @contextmanager
    def model_call(self, operation: str, model: str) -> Iterator[ModelSpan]:
        with self._span(f"{operation} {model}", SpanKind.CLIENT) as span:
            span.set_attributes(
                {
                    "gen_ai.operation.name": operation,
                    "gen_ai.provider.name": "openai",
                    "gen_ai.request.model": model,
                }
            )
            yield _Call(span)

    @override
    def watch_connection(self, connection: asyncpg.Connection) -> None:
        connection.add_query_logger(self._note_query)

    @override
    def watch_engine(self, engine: AsyncEngine) -> None:
        def begin(*given: Any) -> None:
            given[4]._kemem_begun = time_ns()  # noqa: SLF001  # A place of SQLAlchemy's for this.

        def end(*given: Any) -> None:
            self._note(given[2], given[4]._kemem_begun, None)  # noqa: SLF001

        def fail(failure: Any) -> None:
            begun = getattr(failure.execution_context, "_kemem_begun", None)
            if begun is not None:
                self._note(failure.statement or "", begun, failure.original_exception)

        event.listen(engine.sync_engine, "before_cursor_execute", begin)
        event.listen(engine.sync_engine, "after_cursor_execute", end)
        event.listen(engine.sync_engine, "handle_error", fail)

    def _note_query(self, query: Any) -> None:
        """Called in the context of the statement."""
        begun = time_ns() - int(query.elapsed * 1e9)
        self._note(query.query, begun, query.exception)

    def _note(self, statement: str, begun: int, error: BaseException | None) -> None:
        if not trace.get_current_span().is_recording():
            # Such as a worker's look for work, each second.
            return
        operation = _first(_OPERATION, statement).upper() or "QUERY"
        table = _first(_TABLE, statement[:_LOOKED_AT])
        span = self._tracer.start_span(
            f"{operation} {table}".strip(),
            kind=SpanKind.CLIENT,
            attributes={"db.system.name": "postgresql", "db.operation.name": operation}
            | ({"db.collection.name": table} if table else {}),
            start_time=begun,
        )
        if error is not None:
            _fail(span, error)
        span.end()

    @contextmanager
    def _span(self, name: str, kind: SpanKind, parent: Context | None = None) -> Iterator[Span]:
        """A span whose context goes on into the jobs that are ordered inside."""
        with self._tracer.start_as_current_span(
            name, parent, kind, record_exception=False, set_status_on_exception=False
        ) as span:
            carrier: dict[str, str] = {}
            _W3C.inject(carrier)
            token = TRACEPARENT.set(carrier.get(CARRIED))
            try:
                yield span
            except BaseException as error:
                _fail(span, error)
                raise
            finally:
                TRACEPARENT.reset(token)


class _Call(ModelSpan):
    def __init__(self, span: Span) -> None:
        self._span = span

    @override
    def used(self, input_tokens: int, output_tokens: int | None = None) -> None:
        self._span.set_attribute("gen_ai.usage.input_tokens", input_tokens)
        if output_tokens is not None:
            self._span.set_attribute("gen_ai.usage.output_tokens", output_tokens)

    @override
    def failed(self, error: BaseException) -> None:
        _fail(self._span, error)


def _fail(span: Span, error: BaseException) -> None:
    """Its class alone: a message may hold content."""
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", type(error).__name__)


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""
