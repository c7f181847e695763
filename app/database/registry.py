"""Every table, for Alembic; the one list that sees all rooms."""

from sqlalchemy import MetaData

from app.agents.models import Agent
from app.database.base import Base
from app.extraction.models import ExtractionRun
from app.feedback.models import MemoryFeedback
from app.jobs.models import Job
from app.memories.models import GateDecision, Memory, MemoryBucket, MemoryHistory
from app.messages.models import Message
from app.outbox.models import Webhook, WebhookDelivery
from app.projects.models import Project, ProjectMember
from app.sessions.models import Session
from app.tenants.models import ApiKey, Tenant
from app.usage.models import Usage
from app.users.models import User
from app.web.idempotency import IdempotencyKey

TABLES = (
    Tenant, ApiKey, IdempotencyKey, Agent, User, Project, ProjectMember, Session, Message,
    Memory, MemoryHistory, MemoryBucket, GateDecision, MemoryFeedback, Job, ExtractionRun, Usage,
    Webhook, WebhookDelivery,
)  # fmt: skip

metadata: MetaData = Base.metadata
