"""Every table, for Alembic; the one list that sees all rooms."""

from sqlalchemy import MetaData

from app.agents.models import Agent
from app.database.base import Base
from app.memories.models import GateDecision, Memory, MemoryHistory
from app.messages.models import Message
from app.projects.models import Project, ProjectMember
from app.sessions.models import Session
from app.tenants.models import ApiKey, Tenant
from app.users.models import User
from app.web.idempotency import IdempotencyKey

TABLES = (
    Tenant, ApiKey, IdempotencyKey, Agent, User, Project, ProjectMember, Session, Message,
    Memory, MemoryHistory, GateDecision,
)  # fmt: skip

metadata: MetaData = Base.metadata
