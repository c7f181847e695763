"""Every table there is: for Alembic, exports and erasure."""

from sqlalchemy import MetaData

from app.conversation.messages.models import Message
from app.conversation.sessions.models import Session, SessionState, SessionStateSnapshot
from app.governance.evaluations.repository import EvaluationResult
from app.governance.privacy.repository import Erasure
from app.identity.agents.repository import Agent
from app.identity.projects.repository import Project, ProjectMember
from app.identity.tenants.models import ApiKey, SignInCode, Tenant
from app.identity.usage.models import DailyCount, PaidAnswer, Usage
from app.identity.users.repository import User
from app.memory.extraction.models import ExtractionRun
from app.memory.feedback.repository import MemoryFeedback
from app.memory.graph.models import (
    GraphAlias,
    GraphChange,
    GraphEntity,
    GraphMention,
    GraphRelation,
)
from app.memory.memories.models import (
    ContextInjection,
    GateDecision,
    Memory,
    MemoryBucket,
    MemoryHistory,
)
from app.memory.profiles.models import Profile, ProfileHistory, ProfileValue
from app.memory.store.models import StoreItem, StoreText
from app.platform.database.base import Base
from app.platform.jobs.models import Job
from app.platform.outbox.models import Webhook, WebhookDelivery
from app.platform.work.idempotency import StoredAnswer
from app.prompting.blocks.models import AgentBlock, Block, BlockHistory
from app.prompting.checkpoints.models import (
    Approval,
    Checkpoint,
    CheckpointArchive,
    SaverCheckpoint,
    SaverChunk,
    SaverValue,
    SaverWrite,
)
from app.prompting.compaction.repository import SessionSummary
from app.prompting.context.repository import InjectedContext
from app.prompting.documents.models import AgentFolder, File, FileChunk, Folder, Passage

TABLES = (
    Tenant, ApiKey, SignInCode, StoredAnswer, Agent, User, Project, ProjectMember, Session,
    Message, Memory, MemoryHistory, MemoryBucket, GateDecision, MemoryFeedback, Job, ExtractionRun,
    Usage, DailyCount, PaidAnswer, Webhook, WebhookDelivery, SessionState, SessionStateSnapshot,
    SessionSummary, Checkpoint, CheckpointArchive, Approval, SaverCheckpoint, SaverValue,
    SaverChunk, SaverWrite, Block, AgentBlock, BlockHistory, ContextInjection, InjectedContext,
    GraphEntity, GraphAlias, GraphRelation, GraphMention, GraphChange, StoreItem, StoreText,
    Profile, ProfileValue, ProfileHistory, Folder, AgentFolder, File, FileChunk, Passage, Erasure,
    EvaluationResult,
)  # fmt: skip

metadata: MetaData = Base.metadata
