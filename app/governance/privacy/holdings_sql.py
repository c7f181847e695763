"""What belongs to a user, a session, a project or an agent: tables and conditions, in the order in
which they may go. Every condition holds as long as none of it went, so that a dry run counts
what a deletion deletes.
"""

import json
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, cast, exists, func, or_, select
from sqlalchemy.dialects.postgresql import JSONPATH
from sqlalchemy.orm import aliased

from app.conversation.messages.models import Message
from app.conversation.sessions.models import Session, SessionState, SessionStateSnapshot
from app.identity.agents.repository import Agent
from app.identity.projects.repository import Project, ProjectMember
from app.identity.tenants.models import ApiKey
from app.identity.usage.models import DailyCount, PaidAnswer
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
from app.memory.memories.refreshes import GRAPH_REFRESH, PROFILE
from app.memory.profiles.models import Profile, ProfileHistory, ProfileValue
from app.memory.store.models import StoreItem, StoreText
from app.platform.database.base import TenantOwned
from app.platform.jobs.models import Job
from app.platform.outbox.models import WebhookDelivery
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

Holding = tuple[str, type[TenantOwned], ColumnElement[bool]]
"""A name for the receipt, a table, and which of its rows."""

EXTRACTED = "ai"
READ = "knowledge_base"


class Holdings:
    """Of one tenant. Whether the caller may see it is checked before, by its own package."""

    def __init__(self, tenant_id: str) -> None:
        self._tenant_id = tenant_id

    def of_user(self, user_id: str) -> list[Holding]:
        """All rows that belong to the user or were said by the user, whatever their scope."""
        sessions = self._ids(Session, Session.session_id, Session.user_id == user_id)
        # What all users of an agent share may have been extracted from a session of the user.
        extracted = and_(Memory.source == EXTRACTED, Memory.source_id.in_(sessions))
        folders = self._ids(Folder, Folder.folder_id, Folder.user_id == user_id)
        # And a document of theirs may have been read for a project or an agent.
        files = self._ids(File, File.file_id, File.folder_id.in_(folders))
        read = and_(Memory.source == READ, Memory.source_id.in_(files))
        theirs = or_(Memory.user_id == user_id, Memory.session_id.in_(sessions), extracted, read)
        memories = self._ids(Memory, Memory.memory_id, theirs)
        return [
            ("decisions", GateDecision, or_(
                GateDecision.user_id == user_id,
                GateDecision.session_id.in_(sessions),
                GateDecision.memory_id.in_(memories),
            )),
            ("feedback", MemoryFeedback, or_(
                MemoryFeedback.user_id == user_id,
                MemoryFeedback.author_id == user_id,
                MemoryFeedback.memory_id.in_(memories),
            )),
            ("answers", StoredAnswer, or_(
                StoredAnswer.user_id == user_id, _names("user_id", user_id)
            )),
            ("model_answers", PaidAnswer, _paid_for("user_id", user_id, sessions)),
            ("keys", ApiKey, ApiKey.user_id == user_id),
            ("history", MemoryHistory, or_(
                MemoryHistory.user_id == user_id, MemoryHistory.memory_id.in_(memories)
            )),
            ("deliveries", WebhookDelivery, WebhookDelivery.user_id == user_id),
            *_short_term(sessions, shown=memories),
            ("attached_blocks", AgentBlock, AgentBlock.user_id == user_id),
            *self._blocks(Block.user_id == user_id),
            *self._graph("user_id", user_id, theirs, said=sessions),
            *self._derived(theirs, but=Profile.user_id == user_id),
            *self._profile(Profile.user_id == user_id),
            ("jobs", Job, or_(
                Job.user_id == user_id, Job.session_id.in_(sessions), self._about_files(folders),
                _selects(user_id),
            )),
            # What was read from their documents goes before the documents, which say whose it is.
            ("memories", Memory, theirs),
            *self._documents(Folder.user_id == user_id),
            *self._store(StoreItem.user_id == user_id),
            ("buckets", MemoryBucket, or_(
                _bucket("user", user_id),
                and_(MemoryBucket.scope == "session", MemoryBucket.scope_id.in_(sessions)),
            )),
            ("messages", Message, Message.user_id == user_id),
            ("runs", ExtractionRun, or_(
                ExtractionRun.user_id == user_id, ExtractionRun.session_id.in_(sessions)
            )),
            ("sessions", Session, Session.user_id == user_id),
            ("memberships", ProjectMember, ProjectMember.user_id == user_id),
            ("users", User, User.user_id == user_id),
        ]  # fmt: skip

    def of_session(self, session_id: str) -> list[Holding]:
        """A user's own memories stay.

        The session's id says which verdicts and kept answers repeat its words.
        """
        own = and_(Memory.scope == "session", Memory.scope_id == session_id)
        decisions, *rest = self._memories(own)
        whose = self._ids(Session, Session.user_id, Session.session_id == session_id)
        itself = self._ids(Session, Session.session_id, Session.session_id == session_id)
        memories = self._ids(Memory, Memory.memory_id, own)
        return [
            ("decisions", GateDecision, or_(decisions[2], GateDecision.session_id == session_id)),
            ("answers", StoredAnswer, and_(
                or_(StoredAnswer.user_id.in_(whose), StoredAnswer.user_id.is_(None)),
                _names("session_id", session_id),
            )),
            ("model_answers", PaidAnswer, PaidAnswer.session_id == session_id),
            *_short_term(itself, shown=memories),
            *self._blocks(Block.session_id == session_id),
            ("mentions", GraphMention, GraphMention.memory_id.in_(memories)),
            *rest,
            ("buckets", MemoryBucket, _bucket("session", session_id)),
            ("messages", Message, Message.session_id == session_id),
            ("runs", ExtractionRun, ExtractionRun.session_id == session_id),
            ("jobs", Job, Job.session_id == session_id),
            ("sessions", Session, Session.session_id == session_id),
        ]  # fmt: skip

    def of_project(self, project_id: str) -> list[Holding]:
        """Users and sessions stay. What was to be read for the project can be read no more."""
        own = and_(Memory.scope == "project", Memory.scope_id == project_id)
        memories = self._ids(Memory, Memory.memory_id, own)
        folders = self._ids(Folder, Folder.folder_id, Folder.project_id == project_id)
        decisions, *rest = self._memories(own)
        shared = and_(GateDecision.scope == "project", GateDecision.project_id == project_id)
        return [
            ("decisions", GateDecision, or_(decisions[2], shared)),
            ("answers", StoredAnswer, _names("project_id", project_id)),
            ("model_answers", PaidAnswer, PaidAnswer.project_id == project_id),
            ("injections", ContextInjection, ContextInjection.memory_id.in_(memories)),
            *self._graph("project_id", project_id, own),
            *self._derived(own, but=Profile.project_id == project_id),
            *self._profile(Profile.project_id == project_id),
            ("jobs", Job, or_(
                Job.payload[("body", "project_id")].astext == project_id,
                Job.payload[("equal", "project_id")].astext == project_id,
                and_(Job.kind.in_((PROFILE, GRAPH_REFRESH)), Job.key == f"project:{project_id}"),
                # A file of anybody's, read for the project.
                and_(
                    Job.payload["scope"].astext == "project",
                    Job.payload["scope_id"].astext == project_id,
                ),
                self._about_files(folders),
            )),
            *self._documents(Folder.project_id == project_id),
            *rest,
            ("buckets", MemoryBucket, _bucket("project", project_id)),
            ("members", ProjectMember, ProjectMember.project_id == project_id),
            ("projects", Project, Project.project_id == project_id),
        ]  # fmt: skip

    def of_agent(self, agent_id: str) -> list[Holding]:
        """The users it talked to stay."""
        sessions = self._ids(Session, Session.session_id, Session.agent_id == agent_id)
        own = or_(
            Memory.agent_id == agent_id,
            and_(Memory.scope == "session", Memory.scope_id.in_(sessions)),
        )
        memories = self._ids(Memory, Memory.memory_id, own)
        folders = self._ids(Folder, Folder.folder_id, Folder.agent_id == agent_id)
        decisions, *rest = self._memories(own)
        extracted = or_(GateDecision.agent_id == agent_id, GateDecision.session_id.in_(sessions))
        return [
            ("decisions", GateDecision, or_(decisions[2], extracted)),
            ("answers", StoredAnswer, _names("agent_id", agent_id)),
            ("model_answers", PaidAnswer, _paid_for("agent_id", agent_id, sessions)),
            ("daily_counts", DailyCount, DailyCount.agent_id == agent_id),
            *_short_term(sessions, shown=memories),
            *self._blocks(Block.session_id.in_(sessions)),
            ("attached_blocks", AgentBlock, AgentBlock.agent_id == agent_id),
            *self._graph("agent_id", agent_id, own),
            *self._derived(own),
            ("jobs", Job, or_(
                Job.agent_id == agent_id, Job.session_id.in_(sessions),
                and_(Job.kind == GRAPH_REFRESH, Job.key == f"agent:{agent_id}"),
                self._about_files(folders),
            )),
            *self._documents(Folder.agent_id == agent_id, of_agent=agent_id),
            *self._store(StoreItem.agent_id == agent_id),
            *rest,
            ("buckets", MemoryBucket, or_(
                _bucket("agent", agent_id),
                and_(MemoryBucket.scope == "session", MemoryBucket.scope_id.in_(sessions)),
            )),
            ("messages", Message, Message.agent_id == agent_id),
            ("runs", ExtractionRun, or_(
                ExtractionRun.agent_id == agent_id, ExtractionRun.session_id.in_(sessions)
            )),
            ("sessions", Session, Session.agent_id == agent_id),
            ("agents", Agent, Agent.agent_id == agent_id),
        ]  # fmt: skip

    def _ids(self, table: type[TenantOwned], column: Any, rows: ColumnElement[bool]) -> Select[Any]:
        return select(column).where(table.tenant_id == self._tenant_id, rows)

    def _memories(self, own: ColumnElement[bool]) -> list[Holding]:
        ids = self._ids(Memory, Memory.memory_id, own)
        return [
            ("decisions", GateDecision, GateDecision.memory_id.in_(ids)),
            ("feedback", MemoryFeedback, MemoryFeedback.memory_id.in_(ids)),
            ("history", MemoryHistory, MemoryHistory.memory_id.in_(ids)),
            ("memories", Memory, own),
        ]

    def _graph(
        self,
        owner: str,
        subject_id: str,
        own: ColumnElement[bool],
        *,
        said: Select[Any] | None = None,
    ) -> list[Holding]:
        """What is theirs of the graph, and what elsewhere stands on their words.

        Args:
            owner: the column that names whose it is.
            own: the memories that go.
            said: ids of sessions whose messages go.

        """
        mine = getattr(GraphEntity, owner) == subject_id
        entities = self._ids(GraphEntity, GraphEntity.entity_id, mine)
        memories = self._ids(Memory, Memory.memory_id, own)
        stands = self._among(GraphRelation.memory_ids, Memory, Memory.memory_id, own)
        if said is not None:
            extracted = Message.session_id.in_(said)
            evidence = self._among(GraphRelation.evidence, Message, Message.message_id, extracted)
            stands = or_(stands, evidence)
        spoken_of = GraphMention.memory_id.in_(memories)
        return [
            ("relations", GraphRelation, or_(
                getattr(GraphRelation, owner) == subject_id,
                GraphRelation.source_id.in_(entities),
                GraphRelation.destination_id.in_(entities),
                stands,
            )),
            # They keep rows as they were, and with them what was said.
            ("graph_changes", GraphChange, or_(
                getattr(GraphChange, owner) == subject_id,
                self._among(GraphChange.entity_ids, GraphEntity, GraphEntity.entity_id, mine),
                self._among(
                    GraphChange.entity_ids, GraphMention, GraphMention.entity_id, spoken_of
                ),
            )),
            ("mentions", GraphMention, or_(spoken_of, GraphMention.entity_id.in_(entities))),
            ("aliases", GraphAlias, GraphAlias.entity_id.in_(entities)),
            ("entities", GraphEntity, mine),
        ]  # fmt: skip

    def _among(
        self, ids: Any, table: type[TenantOwned], key: Any, rows: ColumnElement[bool]
    ) -> ColumnElement[bool]:
        """Whether one of an array's ids is that of such a row; looked up id by id."""
        return exists().where(table.tenant_id == self._tenant_id, key == func.any(ids), rows)

    def _derived(
        self, own: ColumnElement[bool], *, but: ColumnElement[bool] | None = None
    ) -> list[Holding]:
        """Values of profiles that stand on memories that go, and all that their slots were.

        Args:
            own: the memories.
            but: profiles that go as a whole.

        """
        value, line = aliased(ProfileValue), aliased(ProfileHistory)
        stood = [
            exists().where(
                table.tenant_id == self._tenant_id,
                table.profile_id == ProfileHistory.profile_id,
                table.slot == ProfileHistory.slot,
                self._among(table.memory_ids, Memory, Memory.memory_id, own),
            )
            for table in (value, line)
        ]
        stands = self._among(ProfileValue.memory_ids, Memory, Memory.memory_id, own)
        history: ColumnElement[bool] = or_(*stood)
        if but is not None:
            whole = self._ids(Profile, Profile.profile_id, but)
            history = and_(history, ProfileHistory.profile_id.not_in(whole))
            stands = and_(stands, ProfileValue.profile_id.not_in(whole))
        return [
            ("derived_history", ProfileHistory, history),
            ("derived_values", ProfileValue, stands),
        ]

    def _profile(self, own: ColumnElement[bool]) -> list[Holding]:
        profiles = self._ids(Profile, Profile.profile_id, own)
        return [
            ("profile_history", ProfileHistory, ProfileHistory.profile_id.in_(profiles)),
            ("profile_values", ProfileValue, ProfileValue.profile_id.in_(profiles)),
            ("profiles", Profile, own),
        ]

    def _documents(self, own: ColumnElement[bool], *, of_agent: str | None = None) -> list[Holding]:
        folders = self._ids(Folder, Folder.folder_id, own)
        files = self._ids(File, File.file_id, File.folder_id.in_(folders))
        attached: ColumnElement[bool] = AgentFolder.folder_id.in_(folders)
        if of_agent is not None:
            attached = or_(attached, AgentFolder.agent_id == of_agent)
        return [
            ("passages", Passage, Passage.folder_id.in_(folders)),
            ("file_chunks", FileChunk, FileChunk.file_id.in_(files)),
            ("files", File, File.folder_id.in_(folders)),
            ("attached_folders", AgentFolder, attached),
            ("folders", Folder, own),
        ]

    def _blocks(self, own: ColumnElement[bool]) -> list[Holding]:
        blocks = self._ids(Block, Block.block_id, own)
        return [
            ("block_history", BlockHistory, BlockHistory.block_id.in_(blocks)),
            ("blocks", Block, own),
        ]

    def _store(self, own: ColumnElement[bool]) -> list[Holding]:
        items = self._ids(StoreItem, StoreItem.item_id, own)
        return [
            ("store_texts", StoreText, StoreText.item_id.in_(items)),
            ("store_items", StoreItem, own),
        ]

    def _about_files(self, folders: Select[Any]) -> ColumnElement[bool]:
        """Jobs on files: to read one, whose id is their key, and to remember what is in one."""
        files = self._ids(File, File.file_id, File.folder_id.in_(folders))
        return or_(
            and_(Job.kind == "ingest_file", Job.key.in_(files)),
            Job.payload["file_id"].astext.in_(files),
        )


def _short_term(sessions: Select[Any], *, shown: Select[Any]) -> list[Holding]:
    """What belongs to sessions beside messages, and where memories stood in others' context."""
    return [
        ("approvals", Approval, Approval.session_id.in_(sessions)),
        ("checkpoints", Checkpoint, Checkpoint.session_id.in_(sessions)),
        ("archived_checkpoints", CheckpointArchive, CheckpointArchive.session_id.in_(sessions)),
        ("saver_writes", SaverWrite, SaverWrite.session_id.in_(sessions)),
        ("saver_values", SaverValue, SaverValue.session_id.in_(sessions)),
        ("saver_chunks", SaverChunk, SaverChunk.session_id.in_(sessions)),
        ("saver_checkpoints", SaverCheckpoint, SaverCheckpoint.session_id.in_(sessions)),
        ("summaries", SessionSummary, SessionSummary.session_id.in_(sessions)),
        ("states", SessionState, SessionState.session_id.in_(sessions)),
        ("snapshots", SessionStateSnapshot, SessionStateSnapshot.session_id.in_(sessions)),
        ("injected_contexts", InjectedContext, InjectedContext.session_id.in_(sessions)),
        ("injections", ContextInjection, or_(
            ContextInjection.session_id.in_(sessions), ContextInjection.memory_id.in_(shown)
        )),
    ]  # fmt: skip


def _paid_for(owner: str, subject_id: str, sessions: Select[Any]) -> ColumnElement[bool]:
    """Models' answers to questions about what somebody, or some sessions, said."""
    return or_(getattr(PaidAnswer, owner) == subject_id, PaidAnswer.session_id.in_(sessions))


def _bucket(scope: str, scope_id: str) -> ColumnElement[bool]:
    return and_(MemoryBucket.scope == scope, MemoryBucket.scope_id == scope_id)


def _selects(user_id: str) -> ColumnElement[bool]:
    """Jobs that name a user in what they are to work on, as a deletion by filters may."""
    named = func.jsonb_build_object("one", user_id)
    paths = ("$.**.user_id.** ? (@ == $one)", "$.filters.**.scope_id.** ? (@ == $one)")
    return or_(*(
        func.jsonb_path_exists(payload, cast(path, JSONPATH), named)
        for payload in (Job.payload, Job.again_payload)
        for path in paths
    ))  # fmt: skip


def _names(field: str, value: str) -> ColumnElement[bool]:
    """Kept answers that show an id in a field: they may repeat words of its owner."""
    # As answers are written: an id may hold a quotation mark or a backslash.
    shown = func.convert_to(f'"{field}":{json.dumps(value, ensure_ascii=False)}', "UTF8")
    return func.pg_catalog.position(StoredAnswer.answer, shown) > 0
