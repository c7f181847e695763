"""The services of the layers up to governance, by their class."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from app.conversation.messages.append_service import AppendService
from app.conversation.messages.excerpt_search import ExcerptSearch
from app.conversation.messages.jobs import MessageBackfill
from app.conversation.messages.search_service import MessageSearchService
from app.conversation.messages.service import MessageService, WindowRules
from app.conversation.messages.window_service import WindowService
from app.conversation.sessions.service import SessionService, StateService
from app.governance.evaluations.service import EvaluationService
from app.governance.exports.import_service import ImportService
from app.governance.exports.service import ExportService
from app.governance.forgetting.service import ForgettingService
from app.governance.forgetting.steps import Forgetting, ForgettingRules
from app.governance.operations.service import JobService
from app.governance.privacy.service import ErasureService
from app.governance.statistics.service import StatisticsService
from app.governance.webhooks.sender import SecretBox
from app.governance.webhooks.service import WebhookService
from app.governance.webhooks.targets import Targets
from app.identity.agents.config import Processing
from app.identity.agents.service import AgentCreation, AgentService
from app.identity.projects.service import ProjectService
from app.identity.tenants.schemas import Eraser
from app.identity.tenants.service import Identification, TenantService
from app.identity.tenants.sign_in_service import SignInService
from app.identity.usage.ledger import ModelLedger
from app.identity.usage.service import ModelNames, UsageService
from app.identity.users.service import UserService
from app.language.keyless.reconciler import RulesReconciler
from app.language.llm.errors import UnknownModelError
from app.memory.extraction.inference_request import InferenceRules
from app.memory.extraction.inference_service import InferenceService
from app.memory.extraction.jobs import SessionJobs
from app.memory.extraction.pipeline import Pipeline, PipelineRules
from app.memory.extraction.reread_service import RereadService
from app.memory.extraction.run_policy import RunLimits, model_for
from app.memory.extraction.service import ExtractionService
from app.memory.feedback.service import FeedbackService
from app.memory.graph.edit_service import GraphEditService
from app.memory.graph.merge_service import GraphMergeService
from app.memory.graph.service import GraphService
from app.memory.memories.edit_service import EditService
from app.memory.memories.recall_service import RecallService
from app.memory.memories.refused_service import RefusedTextService
from app.memory.memories.save_service import SaveService
from app.memory.memories.search_service import SearchService
from app.memory.memories.service import MemoryCreation, MemoryService
from app.memory.profiles.document_service import MemoryDocumentService
from app.memory.profiles.jobs import chosen as chosen_profiler
from app.memory.profiles.service import ProfileService
from app.memory.store.service import ANSWER_BYTES, StoreService
from app.platform.http.health import Probe
from app.platform.http.rates import RateLimits
from app.prompting.blocks.creation import AgentWithBlocksService
from app.prompting.blocks.edit_service import BlockEditService
from app.prompting.blocks.service import BlockService
from app.prompting.checkpoints.fork_service import ForkService
from app.prompting.checkpoints.service import ApprovalService, CheckpointService
from app.prompting.compaction.compactor import Compactor
from app.prompting.compaction.service import CompactionService
from app.prompting.compaction.summary_writer import chosen_summariser
from app.prompting.context.service import (
    ContextRules,
    ContextService,
    ContextSources,
)
from app.prompting.documents.archive_service import ArchiveService
from app.prompting.documents.extract_service import FileExtractService
from app.prompting.documents.file_service import FileService
from app.prompting.documents.passage_service import PassageSearchService, PassageService
from app.prompting.documents.service import FolderService
from app.prompting.tools.handlers import ToolHandlers
from app.prompting.tools.service import ToolService
from app.prompting.tools.toolset import TOOLS
from app.runtime import Runtime
from app.settings import Settings

Service = TypeVar("Service")


class Services(Protocol):
    """The services of a process by their class, each built once."""

    def get(self, kind: type[Service]) -> Service:
        """The service of this class. Raises KeyError where nothing builds it."""
        ...


Builder = Callable[[Services, Runtime], Any]


def _agents(_: Services, at: Runtime) -> AgentService:
    catalogues = (at.catalogue, at.models, at.summarisers, at.profilers)
    return AgentService(at.work, *catalogues, at.processing, tuple(TOOLS))


def _window_rules(at: Runtime) -> WindowRules:
    return WindowRules(at.counter, at.window_policy, at.checkpoint_store)


def _appends(_: Services, at: Runtime) -> AppendService:
    return AppendService(
        at.work, at.capture, at.indexer, _window_rules(at), at.now, at.processing,
        auto_create=at.settings.auto_create,
    )  # fmt: skip


def _windows(_: Services, at: Runtime) -> WindowService:
    return WindowService(at.work, at.counter, at.window_policy, at.window_strategies, at.now)


def _saving(_: Services, at: Runtime) -> SaveService:
    return SaveService(at.work, at.embedders, at.saving_rules, at.processing)


def _searching(at: Runtime) -> tuple[Any, ...]:
    return (
        at.search_ranks,
        at.reranker,
        at.embedding_ledger,
        at.now,
        at.processing,
        at.counter,
        at.activity,
        at.large_buckets,
    )


def _limits(at: Runtime) -> RunLimits:
    return RunLimits(at.settings.max_extractions, at.quota)


def _pipeline(_: Services, at: Runtime) -> Pipeline:
    rules = PipelineRules(at.saving_rules, at.forgetting_policy, RulesReconciler())
    return Pipeline(at.database, at.embedders, rules, at.processing)


def _inference(services: Services, at: Runtime) -> InferenceService:
    settings, capture = at.settings, at.capture
    rules = InferenceRules(settings.auto_create, capture.tags, capture.window, _limits(at))
    saving, pipeline = services.get(SaveService), services.get(Pipeline)
    return InferenceService(at.work, saving, pipeline, at.models, rules, at.now)


def _feedback(_: Services, at: Runtime) -> FeedbackService:
    settings = at.settings
    return FeedbackService(
        at.work, secrets=settings.secrets_action, identifiers=settings.identifiers_action
    )


def _compactor(_: Services, at: Runtime) -> Compactor:
    ledger = ModelLedger(at.database, at.quota, "summarise", failure="summary_failed")
    return Compactor(
        at.counter, ledger, at.checkpoint_store, at.window_policy, at.saving_rules.gate, at.now
    )


def _usage(_: Services, at: Runtime) -> UsageService:
    def models(config: Mapping[str, Any]) -> ModelNames:
        configs = (config,)
        try:
            reading = model_for(at.models, *configs)
            return {
                "extraction": reading.extractor.model,
                "reconciliation": reading.reconciler.model,
                "profile": chosen_profiler(at.profilers, configs).model,
                "summary": chosen_summariser(at.summarisers, configs).model,
            }
        except UnknownModelError:
            # Stored before its endpoint was removed from the deployment.
            return models({})

    return UsageService(at.work, at.quota, at.prices, models)


def _context(services: Services, at: Runtime) -> ContextService:
    settings = at.settings
    rules = ContextRules(
        at.window_policy,
        settings.max_injection_tokens,
        settings.injection_enabled,
        at.window_strategies,
    )
    sources = ContextSources(
        at.embedders,
        services.get(RecallService),
        services.get(ExcerptSearch),
        services.get(PassageSearchService),
    )
    return ContextService(
        at.database, sources, at.counter, rules, at.injections, at.now, at.activity
    )


def _handlers(services: Services, at: Runtime) -> ToolHandlers:
    return ToolHandlers(
        services.get(SaveService),
        services.get(MemoryService),
        services.get(EditService),
        services.get(SearchService),
        services.get(MessageSearchService),
        services.get(MessageService),
        services.get(PassageSearchService),
        services.get(ArchiveService),
        services.get(BlockEditService),
        at.injections,
        at.now,
    )


def _forgetting(_: Services, at: Runtime) -> Forgetting:
    purge = timedelta(days=at.settings.purge_days)
    rules = ForgettingRules(at.forgetting_policy, purge, at.window_policy)
    return Forgetting(at.database, rules)


def _probe(_: Services, at: Runtime) -> Probe:
    settings = at.settings
    token = settings.metrics_token
    return Probe(
        at.database,
        embedding_model=at.catalogue.default.name,
        memory_enabled=settings.enabled,
        metrics_token=None if token is None else token.get_secret_value(),
        metrics_folder=at.metrics_folder,
    )


SERVICES: Final[Mapping[type[Any], Builder]] = MappingProxyType(
    {
        Probe: _probe,
        Processing: lambda _, at: at.processing,
        Settings: lambda _, at: at.settings,
        # Identity.
        Identification: lambda _, at: at.identification,
        RateLimits: lambda _, at: at.rate_limits,
        TenantService: lambda _, at: TenantService(
            at.work, at.catalogue, at.now, at.processing.allowed
        ),
        SignInService: lambda services, at: SignInService(
            at.work, services.get(TenantService), at.now
        ),
        AgentService: _agents,
        UserService: lambda _, at: UserService(at.work, auto_create=at.settings.auto_create),
        ProjectService: lambda _, at: ProjectService(at.work, auto_create=at.settings.auto_create),
        UsageService: _usage,
        # Conversation.
        SessionService: lambda _, at: SessionService(
            at.work, at.checkpoint_store, auto_create=at.settings.auto_create, now=at.now
        ),
        StateService: lambda _, at: StateService(at.work),
        AppendService: _appends,
        MessageService: lambda _, at: MessageService(at.work, _window_rules(at)),
        WindowService: _windows,
        MessageSearchService: lambda _, at: MessageSearchService(
            at.database,
            at.embedders,
            at.search_ranks.boosts,
            at.now,
            at.capture.tags,
            counter=at.counter,
        ),
        MessageBackfill: lambda _, at: MessageBackfill(at.database, at.indexer, at.embedders),
        # Memory.
        MemoryService: lambda _, at: MemoryService(at.work, at.counter),
        SaveService: _saving,
        RefusedTextService: lambda services, at: RefusedTextService(
            at.work, services.get(SaveService)
        ),
        EditService: lambda _, at: EditService(
            at.work, at.embedders, at.saving_rules.gate, at.processing
        ),
        SearchService: lambda _, at: SearchService(
            at.database, at.embedders, at.memory_use, *_searching(at)
        ),
        RecallService: lambda _, at: RecallService(
            at.database,
            at.search_ranks,
            at.reranker,
            at.embedding_ledger,
            at.processing,
            at.large_buckets,
        ),
        ExcerptSearch: lambda _, at: ExcerptSearch(
            at.database, at.search_ranks.boosts, at.capture.tags
        ),
        Pipeline: _pipeline,
        InferenceService: _inference,
        RereadService: lambda services, at: RereadService(
            at.database, services.get(Pipeline), at.models, at.capture.tags, at.now
        ),
        ExtractionService: lambda _, at: ExtractionService(at.work, at.models, _limits(at), at.now),
        SessionJobs: lambda services, at: SessionJobs(
            at.work, services.get(Pipeline), at.models, _limits(at), at.capture.tags, at.now
        ),
        GraphService: lambda _, at: GraphService(at.work, at.now),
        GraphEditService: lambda _, at: GraphEditService(at.work, at.now),
        GraphMergeService: lambda _, at: GraphMergeService(at.work, at.now),
        ProfileService: lambda _, at: ProfileService(
            at.work, at.saving_rules.gate, auto_create=at.settings.auto_create
        ),
        MemoryDocumentService: lambda services, at: MemoryDocumentService(
            at.work,
            services.get(SaveService),
            at.saving_rules.gate,
            auto_create=at.settings.auto_create,
        ),
        FeedbackService: _feedback,
        StoreService: lambda _, at: StoreService(
            at.work,
            at.embedders,
            auto_create=at.settings.auto_create,
            answer_bytes=ANSWER_BYTES,
        ),
        # Prompting.
        ContextService: _context,
        Compactor: _compactor,
        CompactionService: lambda services, at: CompactionService(
            at.work, services.get(Compactor), at.summarisers, at.window_strategies, at.now
        ),
        CheckpointService: lambda _, at: CheckpointService(at.work, at.window_policy),
        ForkService: lambda _, at: ForkService(at.work, at.window_policy),
        ApprovalService: lambda _, at: ApprovalService(at.work),
        BlockService: lambda _, at: BlockService(at.work, at.counter),
        BlockEditService: lambda _, at: BlockEditService(at.work, at.saving_rules.gate),
        AgentCreation: lambda services, _: services.get(AgentWithBlocksService),
        Eraser: lambda services, _: services.get(ErasureService),
        MemoryCreation: lambda services, _: services.get(InferenceService),
        AgentWithBlocksService: lambda services, at: AgentWithBlocksService(
            at.work, services.get(AgentService)
        ),
        FolderService: lambda _, at: FolderService(at.work, auto_create=at.settings.auto_create),
        FileService: lambda _, at: FileService(
            at.work, upload_max_bytes=at.settings.upload_max_bytes
        ),
        PassageService: lambda _, at: PassageService(at.work, at.embedders, at.counter),
        ArchiveService: lambda services, at: ArchiveService(
            at.work,
            services.get(FolderService),
            services.get(PassageService),
            at.saving_rules.gate,
        ),
        PassageSearchService: lambda _, at: PassageSearchService(
            at.database, at.embedders, at.search_ranks.boosts, at.now, at.counter
        ),
        FileExtractService: lambda services, at: FileExtractService(
            at.work, services.get(Pipeline), at.models, _limits(at), at.now
        ),
        ToolHandlers: _handlers,
        ToolService: lambda services, at: ToolService(
            at.work, services.get(ToolHandlers), services.get(BlockEditService), at.counter
        ),
        # Governance.
        Forgetting: _forgetting,
        ForgettingService: lambda services, at: ForgettingService(
            at.work, services.get(Forgetting), at.settings.purge_days
        ),
        JobService: lambda _, at: JobService(at.work),
        StatisticsService: lambda _, at: StatisticsService(at.work),
        EvaluationService: lambda _, at: EvaluationService(at.work),
        ErasureService: lambda _, at: ErasureService(at.work),
        WebhookService: lambda _, at: WebhookService(
            at.work,
            Targets(private=at.settings.webhook_private_targets),
            SecretBox(at.settings.secret_keys),
            at.now,
        ),
        ExportService: lambda _, at: ExportService(at.database, at.export_slots, at.now),
        ImportService: lambda _, at: ImportService(at.work),
    }
)
