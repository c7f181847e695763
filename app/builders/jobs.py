"""The handlers of background jobs, by their class."""

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final

from app.builders.services import Builder, Services
from app.conversation.messages.jobs import MessageBackfill, MessageJobs
from app.governance.forgetting.jobs import ForgettingJobs
from app.governance.forgetting.steps import Forgetting
from app.governance.operations.housekeeping import Housekeeping
from app.governance.operations.repository import Retention
from app.governance.statistics.rollup import Rollup
from app.governance.webhooks.delivery import Deliverer, DeliverySchedule, Timeouts
from app.governance.webhooks.sender import SecretBox
from app.governance.webhooks.targets import Targets
from app.identity.usage.ledger import ModelLedger
from app.language.llm.openai_client import authorities
from app.language.parsing.parser_pool import ParserPool
from app.memory.graph.jobs import GraphJobs
from app.memory.graph.memory_reader import MemoryReader
from app.memory.memories.backfill import MemoryBackfill
from app.memory.memories.deletion_service import BulkDeletion
from app.memory.memories.quantisation import QuantisationService
from app.memory.profiles.derivation import ProfileDerivation
from app.memory.profiles.jobs import ProfileJobs
from app.prompting.checkpoints.archive_service import CheckpointArchiving
from app.prompting.compaction.compactor import Compactor
from app.prompting.compaction.jobs import CompactionJobs
from app.prompting.documents.jobs import FileJobs
from app.runtime import Runtime


def _deliverer(_: Services, at: Runtime) -> Deliverer:
    settings = at.settings
    return Deliverer(
        at.database,
        Targets(private=settings.webhook_private_targets),
        SecretBox(settings.secret_keys),
        authorities(),
        at.now,
        timeouts=Timeouts.within(timedelta(seconds=settings.job_timeout_seconds)),
    )


def _housekeeping(services: Services, at: Runtime) -> Housekeeping:
    settings = at.settings
    checkpoints_kept = timedelta(days=settings.checkpoint_ttl_days) or None
    return Housekeeping(
        at.database,
        Retention(deleted=timedelta(days=settings.purge_days)),
        memories=MemoryBackfill(at.database),
        messages=services.get(MessageBackfill),
        quantisation=services.get(QuantisationService),
        statistics=Rollup(at.database, at.catalogue).run,
        checkpoints=CheckpointArchiving(at.database, checkpoints_kept),
    )


def _profiles(_: Services, at: Runtime) -> ProfileJobs:
    ledger = ModelLedger(at.database, at.quota, "profile", failure="profile_failed")
    derivation = ProfileDerivation(ledger, at.saving_rules.gate, at.now)
    interval = timedelta(seconds=at.settings.profile_interval_seconds)
    return ProfileJobs(at.work, derivation, at.profilers, at.now, interval)


JOBS: Final[Mapping[type[Any], Builder]] = MappingProxyType(
    {
        MessageJobs: lambda services, at: MessageJobs(
            at.database, services.get(MessageBackfill), at.now
        ),
        GraphJobs: lambda _, at: GraphJobs(at.work, MemoryReader(), at.now),
        ProfileJobs: _profiles,
        BulkDeletion: lambda _, at: BulkDeletion(at.database),
        QuantisationService: lambda _, at: QuantisationService(at.database),
        CompactionJobs: lambda services, at: CompactionJobs(
            at.work, services.get(Compactor), at.summarisers, at.now
        ),
        FileJobs: lambda _, at: FileJobs(at.work, at.embedders, ParserPool(), at.now),
        ForgettingJobs: lambda services, _: ForgettingJobs(services.get(Forgetting)),
        Housekeeping: _housekeeping,
        Deliverer: _deliverer,
        DeliverySchedule: lambda _, at: DeliverySchedule(at.database, at.now),
    }
)
