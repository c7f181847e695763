"""Every table, for Alembic; the one list that sees all rooms."""

from sqlalchemy import MetaData

from app.agents.models import Agent
from app.blocks.models import AgentBlock, Block, BlockHistory
from app.checkpoints.models import Approval, Checkpoint, CheckpointArchive
from app.checkpoints.saver_models import SaverCheckpoint, SaverChunk, SaverValue, SaverWrite
from app.compaction.models import SessionSummary
from app.database.base import Base
from app.extraction.models import ExtractionRun
from app.feedback.models import MemoryFeedback
from app.folders.models import AgentFolder, File, FileChunk, Folder, Passage
from app.graph.models import GraphAlias, GraphChange, GraphEntity, GraphMention, GraphRelation
from app.jobs.models import Job
from app.memories.models import (
    ContextInjection,
    GateDecision,
    Memory,
    MemoryBucket,
    MemoryHistory,
)
from app.messages.models import Message
from app.outbox.models import Webhook, WebhookDelivery
from app.privacy.models import Erasure
from app.profiles.models import Profile, ProfileHistory, ProfileValue
from app.projects.models import Project, ProjectMember
from app.sessions.models import Session, SessionState, SessionStateSnapshot
from app.tenants.models import ApiKey, Tenant
from app.usage.models import Usage
from app.users.models import User
from app.web.idempotency import IdempotencyKey

TABLES = (
    Tenant, ApiKey, IdempotencyKey, Agent, User, Project, ProjectMember, Session, Message,
    Memory, MemoryHistory, MemoryBucket, GateDecision, MemoryFeedback, Job, ExtractionRun, Usage,
    Webhook, WebhookDelivery, SessionState, SessionStateSnapshot, SessionSummary, Checkpoint,
    CheckpointArchive, Approval, SaverCheckpoint, SaverValue, SaverChunk, SaverWrite, Block,
    AgentBlock, BlockHistory, ContextInjection, GraphEntity, GraphAlias, GraphRelation,
    GraphMention, GraphChange, Profile, ProfileValue, ProfileHistory, Folder, AgentFolder, File,
    FileChunk, Passage, Erasure,
)  # fmt: skip

metadata: MetaData = Base.metadata
