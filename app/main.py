"""The service as an ASGI application: the routers around one runtime.

`app`, as in `uvicorn app.main:app`, is made when it is first asked for, so that importing this
module reads no settings. It needs DATABASE_URL; `kemem serve` brings a database along.
"""

import gc
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypedDict

# What is imported below stays as long as the process. Looking for garbage among it, again and
# again, took a fifth of the start; once behind it and once when the process ends, two fifths.
_COLLECTS = gc.isenabled()
gc.disable()

from fastapi import FastAPI

from app.builders.factory import Factory
from app.conversation.messages.router import anywhere_router, window_router
from app.conversation.messages.router import router as messages
from app.conversation.sessions.router import router as sessions
from app.conversation.sessions.router import state_router as states
from app.errors import ConfigurationError
from app.governance.evaluations.router import router as evaluations
from app.governance.exports.router import router as exports
from app.governance.forgetting.router import router as forgetting
from app.governance.operations.router import router as jobs
from app.governance.privacy.router import router as privacy
from app.governance.statistics.router import router as statistics
from app.governance.webhooks.router import router as webhooks
from app.identity.agents.router import processors_router as processors
from app.identity.agents.router import router as agents
from app.identity.projects.router import router as projects
from app.identity.tenants.principal import KEY_ERRORS, identified
from app.identity.tenants.router import keys_router, tenants_router
from app.identity.usage.router import router as usage
from app.identity.users.router import router as users
from app.integrations.dashboard.router import router as dashboard
from app.integrations.guide.router import install_guide
from app.integrations.langgraph.router import router as saver
from app.integrations.mcp.router import router as mcp
from app.integrations.mem0.dialect_router import (
    HOSTED,
    PLAIN_TYPES,
    SERVER,
    MountedDialect,
    api_key_as_bearer,
    error_body,
    token_as_bearer,
)
from app.integrations.mem0.oss_router import router as mem0_server
from app.integrations.mem0.project_router import profile_router as mem0_profiles
from app.integrations.mem0.project_router import router as mem0_projects
from app.integrations.mem0.project_router import webhook_router as mem0_webhooks
from app.integrations.mem0.router import batch_router as mem0_batches
from app.integrations.mem0.router import router as mem0
from app.memory.extraction.router import router as extraction
from app.memory.feedback.router import router as feedback
from app.memory.graph.router import router as graph
from app.memory.memories.refused_router import router as refused
from app.memory.memories.router import project_router as project_memories
from app.memory.memories.router import router as memories
from app.memory.profiles.router import router as profiles
from app.memory.store.router import router as store
from app.platform.http import health, openapi, problems
from app.platform.http.hot_route import try_first
from app.platform.http.middleware import RequestMiddleware
from app.platform.observability.logging import configure_logging
from app.platform.version import VERSION
from app.prompting.blocks.router import router as blocks
from app.prompting.checkpoints.router import router as checkpoints
from app.prompting.compaction.router import router as compaction
from app.prompting.context.router import router as context
from app.prompting.documents.router import router as folders
from app.prompting.tools.router import router as tools
from app.runtime import Runtime, open_runtime, warmed_up
from app.settings import Settings, load_settings
from app.worker import working

if _COLLECTS:
    gc.freeze()
    gc.enable()

DESCRIPTION = """
Memory for AI agents on plain PostgreSQL. Paste your key under **Authorize** and try any route.

Errors are `application/problem+json` with a stable `code` and a `request_id`. Lists are paged
by `cursor`. Every POST that changes something takes an `Idempotency-Key`, under which a successful
answer is kept for a day; what carries a `version` takes `If-Match`.
Moments are ISO 8601 with a zone (`2026-11-21T12:00:00Z`); one without a zone is refused with 422.
"""

# In the order in which a newcomer needs them.
TAGS = [
    {"name": "memories", "description": "What is remembered, why, and how it is found."},
    {"name": "sessions", "description": "Conversations."},
    {"name": "messages", "description": "What was said, in order."},
    {"name": "context", "description": "What the model should see next, within a budget."},
    {"name": "users", "description": "The people an agent talks to."},
    {"name": "agents", "description": "Applications that use memory."},
    {"name": "profiles", "description": "What is known of users and projects, value by value."},
    {"name": "projects", "description": "Groups of users who share memories."},
    {"name": "extraction", "description": "How conversations become memories, run by run."},
    {"name": "jobs", "description": "Background work: pending, running, done or dead."},
    {"name": "graph", "description": "People and things, and how they are related."},
    {"name": "blocks", "description": "Texts that are always in the context of an agent."},
    {"name": "folders", "description": "Documents, and the passages they are cut into."},
    {"name": "checkpoints", "description": "States to restore a session to, and approvals."},
    {"name": "tools", "description": "Memory as functions that a model may call."},
    {"name": "store", "description": "Items in namespaces, as LangGraph's stores keep them."},
    {"name": "feedback", "description": "What callers think of memories."},
    {"name": "forgetting", "description": "What is removed over time, and receipts of erasures."},
    {"name": "exports", "description": "Export and import, as lines of JSON."},
    {"name": "webhooks", "description": "Who is notified of events, and the deliveries."},
    {"name": "statistics", "description": "Whether what is remembered is found, and used."},
    {"name": "usage", "description": "What models were used for, and the day's quota."},
    {"name": "keys", "description": "Who may call; for admins."},
    {"name": "tenants", "description": "Owners of data and keys; for operators."},
    {"name": "operations", "description": "For probes and scrapers."},
]

# The busiest first: routes are tried in turn, and the row of some 45 takes 0.2 ms. What the
# docs show is in the order of TAGS.
ROUTERS = (
    memories,
    project_memories,
    refused,
    messages,
    window_router,
    context,
    anywhere_router,
    sessions,
    compaction,
    graph,
    states,
    checkpoints,
    saver,
    store,
    profiles,
    users,
    agents,
    processors,
    blocks,
    tools,
    folders,
    extraction,
    jobs,
    feedback,
    usage,
    statistics,
    evaluations,
    webhooks,
    forgetting,
    projects,
    exports,
    privacy,
    tenants_router,
    keys_router,
    dashboard,
    mcp,
)

MEM0_ROUTERS = (mem0, mem0_batches, mem0_profiles, mem0_webhooks, mem0_projects)

# Mounted: each has its own errors and its own document, at `openapi.json` below its path.
DIALECTS = {
    HOSTED: MountedDialect("mem0's API", MEM0_ROUTERS, token_as_bearer),
    SERVER: MountedDialect("mem0's server", (mem0_server,), api_key_as_bearer),
}


EXAMPLES = Path(__file__).parent / "openapi_examples.json"
"""What a service answered; `scripts/record_examples.py` records it."""
DESCRIPTIONS = Path(__file__).parent / "openapi_descriptions.json"
"""What parameters and fields mean whose code does not say it."""


class State(TypedDict):
    services: Factory


def create_app(
    opening: AbstractAsyncContextManager[Runtime], *, request_max_bytes: int = 2 * 1024 * 1024
) -> FastAPI:
    """The service around a runtime that is opened at start and closed at the end.

    Args:
        request_max_bytes: largest request body that is read.

    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[State]:
        async with opening as runtime:
            yield {"services": Factory(runtime)}

    app = FastAPI(
        title="KeMem",
        version=VERSION,
        description=DESCRIPTION,
        openapi_tags=TAGS,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # Its own would tell a provider of the process what exceptions say; ours are in `otel.py`.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        separate_input_output_schemas=True,
        # Short and stable: code is generated from them.
        generate_unique_id_function=lambda route: route.name,
    )
    for router in ROUTERS:
        app.include_router(router)
    try_first(app.router)
    app.include_router(health.router)
    for path, dialect in DIALECTS.items():
        app.mount(path, dialect)
    openapi.install_page(app)
    install_guide(app)
    problems.install(app)
    openapi.install_document(
        app, *KEY_ERRORS, examples=EXAMPLES, descriptions=DESCRIPTIONS, plain_types=PLAIN_TYPES
    )
    app.add_middleware(
        RequestMiddleware,
        max_bytes=request_max_bytes,
        identify=identified,
        error_bodies=error_body,
    )
    return app


def application(settings: Settings, *, pretty: bool = False) -> FastAPI:
    """The service with a runtime of its own, opened at start, and the worker that belongs to it.

    Args:
        pretty: log for people, not for machines.

    Raises:
        ConfigurationError: there is no DATABASE_URL.

    """
    configure_logging(settings.log_level, pretty=pretty)
    if settings.database_url is None:
        raise ConfigurationError(
            "DATABASE_URL is not set. Set it, or run `kemem serve`, which brings a PostgreSQL of "
            "its own along."
        )
    opening = _open_with_worker(settings, settings.database_url.get_secret_value())
    return create_app(opening, request_max_bytes=settings.request_max_bytes)


@asynccontextmanager
async def _open_with_worker(settings: Settings, dsn: str) -> AsyncIterator[Runtime]:
    async with (
        open_runtime(settings, dsn) as runtime,
        warmed_up(),
        working(runtime, dsn),
    ):
        yield runtime


def __getattr__(name: str) -> FastAPI:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        made = application(load_settings())
    except ConfigurationError as error:
        # Whoever starts the server reads a sentence, as from `kemem serve`, and no traceback.
        sys.exit(f"kemem: {error}")
    globals()["app"] = made
    return made
