"""Builds the services of a process: each once, at its first use, out of what the runtime holds. The
services of integrations with other products are here.

Routers and the worker ask for a service by its class and know nothing of the runtime, so every
layer can be imported without the ones above it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from app.builders.jobs import JOBS
from app.builders.services import SERVICES, Builder
from app.conversation.sessions.service import SessionService
from app.governance.operations.service import JobService
from app.governance.privacy.service import ErasureService
from app.governance.webhooks.service import WebhookService
from app.identity.agents.service import AgentService
from app.identity.tenants.service import TenantService
from app.identity.users.service import UserService
from app.integrations.langgraph.service import SaverService
from app.integrations.langgraph.thread_service import SaverThreadService
from app.integrations.mcp.service import McpResourceService, McpToolService
from app.integrations.mem0.change_service import (
    Mem0BatchService,
    Mem0ChangeService,
    Mem0FeedbackService,
)
from app.integrations.mem0.entity_service import Mem0EntityService
from app.integrations.mem0.export_service import Mem0ExportService
from app.integrations.mem0.profile_service import Mem0ProfileService, Mem0ProfileSettingsService
from app.integrations.mem0.project_service import Mem0ProjectService, Mem0WebhookService
from app.integrations.mem0.service import Mem0Service
from app.memory.extraction.inference_service import InferenceService
from app.memory.feedback.service import FeedbackService
from app.memory.graph.service import GraphService
from app.memory.memories.edit_service import EditService
from app.memory.memories.search_service import SearchService
from app.memory.memories.service import MemoryService
from app.memory.profiles.service import ProfileService
from app.prompting.blocks.service import BlockService
from app.prompting.context.service import (
    ContextService,
)
from app.prompting.tools.handlers import ToolHandlers
from app.runtime import Runtime

INTEGRATIONS: Final[Mapping[type[Any], Builder]] = MappingProxyType(
    {
        McpToolService: lambda services, at: McpToolService(
            at.work,
            services.get(ToolHandlers),
            services.get(MemoryService),
            services.get(GraphService),
            services.get(ProfileService),
            services.get(ContextService),
            at.counter,
            at.now,
        ),
        McpResourceService: lambda services, _: McpResourceService(
            services.get(ProfileService), services.get(BlockService)
        ),
        SaverService: lambda _, at: SaverService(at.work, auto_create=at.settings.auto_create),
        SaverThreadService: lambda _, at: SaverThreadService(
            at.work, auto_create=at.settings.auto_create
        ),
        Mem0Service: lambda services, at: Mem0Service(
            at.work,
            services.get(InferenceService),
            services.get(MemoryService),
            services.get(SearchService),
        ),
        Mem0BatchService: lambda services, _: Mem0BatchService(
            services.get(MemoryService), services.get(Mem0ChangeService)
        ),
        Mem0FeedbackService: lambda services, _: Mem0FeedbackService(services.get(FeedbackService)),
        Mem0ExportService: lambda services, at: Mem0ExportService(
            at.work, services.get(MemoryService), services.get(ProfileService)
        ),
        Mem0ProfileService: lambda services, at: Mem0ProfileService(
            at.work,
            services.get(ProfileService),
            services.get(UserService),
            services.get(JobService),
        ),
        Mem0ProfileSettingsService: lambda services, at: Mem0ProfileSettingsService(
            services.get(AgentService), at.profilers
        ),
        Mem0ProjectService: lambda services, _: Mem0ProjectService(services.get(TenantService)),
        Mem0WebhookService: lambda services, _: Mem0WebhookService(services.get(WebhookService)),
        Mem0ChangeService: lambda services, at: Mem0ChangeService(
            at.work, services.get(MemoryService), services.get(EditService)
        ),
        Mem0EntityService: lambda services, at: Mem0EntityService(
            at.work,
            services.get(Mem0ChangeService),
            services.get(ErasureService),
            services.get(AgentService),
            services.get(SessionService),
            services.get(JobService),
        ),
    }
)


Service = TypeVar("Service")

_BUILDERS: Final[Mapping[type[Any], Builder]] = {**SERVICES, **INTEGRATIONS, **JOBS}


class Factory:
    """The services of one runtime, by their class."""

    def __init__(self, runtime: Runtime, built: Mapping[type[Any], Any] | None = None) -> None:
        """Build out of `runtime`; those in `built` are there already."""
        self.runtime = runtime
        self._built: dict[type[Any], Any] = dict(built or {})

    def get(self, kind: type[Service]) -> Service:
        """The service of this class; the same object every time.

        Raises:
            KeyError: nothing here builds such a service.

        """
        built: Service | None = self._built.get(kind)
        if built is None:
            built = self._built[kind] = _BUILDERS[kind](self, self.runtime)
        return built
