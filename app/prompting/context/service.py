"""What should the model see? One use case: a context for the next call."""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import perf_counter
from typing import Any, Final

from app.conversation.messages.excerpt_search import ExcerptQuery, ExcerptSearch
from app.conversation.messages.excerpts import Excerpts
from app.conversation.messages.schemas import CONTENT_LENGTH
from app.conversation.messages.window_service import StrategyFactory, pick_of
from app.conversation.sessions.policy import WindowPolicy, resolve
from app.conversation.sessions.repository import SessionRepository
from app.conversation.sessions.schemas import SessionNotFoundError
from app.identity.agents.embedders import EmbeddedQuery, Embedders
from app.identity.tenants.access import Principal
from app.identity.usage.activity import Activity
from app.language.llm.tokens import TokenCounter
from app.language.text.offload import INLINE_CHARACTERS, read_text
from app.memory.memories.candidate_search import any_fitting
from app.memory.memories.recall_service import Recall, RecallResult, RecallService
from app.platform.database.engine import Database
from app.platform.database.joint_reads import HotReads, side_by_side
from app.platform.values.pagination import Page, decode_time, page
from app.prompting.context.assembly import CORRECTIONS_SHARE
from app.prompting.context.composition import (
    Composition,
    ContextOptions,
    ConversationParts,
    conversation_parts,
)
from app.prompting.context.context_sql import CONTEXT
from app.prompting.context.injections import Injections, ShownContext
from app.prompting.context.repository import InjectionRepository
from app.prompting.context.scene import (
    STORED,
    Scene,
    SceneConversation,
    blocks_of,
    given_conversation,
    stored_conversation,
)
from app.prompting.context.schemas import ContextRequest, InjectedContextRead, InjectionQuery
from app.prompting.context.templates import fill
from app.prompting.context.window_part import FURTHER
from app.prompting.documents.passage_service import PassageSearchService
from app.prompting.documents.schemas import PassageHit, PassageHits, PassageSearch

LEAST_LINE: Final = 12
"""Fewest tokens of nearly every remembered line, from which the limit of the search follows."""

FEWEST: Final = 10
MOST: Final = 200

QUERY_LENGTH: Final = 2000
"""Characters of the newest user message that become the query; the rest is seldom a question."""


@dataclass(frozen=True, slots=True)
class ContextRules:
    """The deployment's settings of contexts."""

    policy: WindowPolicy
    memory_tokens: int
    injection_enabled: bool
    strategies: Mapping[str, StrategyFactory]


@dataclass(frozen=True, slots=True)
class ContextSources:
    """Where a context finds what it shows besides its own conversation."""

    embedders: Embedders
    memories: RecallService
    excerpts: ExcerptSearch
    passages: PassageSearchService


class ContextService:
    def __init__(
        self,
        database: Database,
        sources: ContextSources,
        counter: TokenCounter,
        rules: ContextRules,
        injections: Injections,
        now: Callable[[], datetime],
        activity: Activity,
    ) -> None:
        self._database = database
        self._sources = sources
        self._counter = counter
        self._rules = rules
        self._injections = injections
        self._now = now
        self._activity = activity

    async def build(
        self, principal: Principal, session_id: str, body: ContextRequest
    ) -> dict[str, Any]:
        """What the model should see next: the fields of a `ContextAnswer`.

        Sends at most three statements: the session with all that belongs to it, and two of the
        searches of memories and excerpts; a search of passages adds its own. Nothing is written;
        the shown memories are recorded after the answer, so that they are not extracted again when
        a message repeats them; not with `preview`.

        Raises:
            SessionNotFoundError: the caller has no such session.
            UnknownVariableError: the system prompt has a variable without a value.
            WindowTooSmallError: what must be shown does not fit, not even in its shortest forms.
            LongPromptError: it is too long once its variables are replaced, or with the agent's.
            UnknownStrategyError, InvalidStrategyError: `strategy` is unknown or not valid.
            InvalidFilterError: the filter is not valid.

        """
        started = perf_counter()
        pick = pick_of(body.strategy, self._rules.strategies)
        scene = await self._read(principal, session_id, body)
        template, sources = _system_prompt(scene, body), [body.context, *scene.sources]
        # The values of the variables may be as long as the prompt may get.
        characters = CONTENT_LENGTH if "{{" in template else 0
        instructions = await read_text(characters, fill, template, sources)
        off_by = scene.off_by(enabled=self._rules.injection_enabled)
        said = scene.conversation.last_request
        query = body.query or (said and said[:QUERY_LENGTH])
        options = ContextOptions(body, instructions, self._memory_tokens(body), pick)
        # A definition of a tool may be of any length.
        characters = len(instructions) + scene.characters + (INLINE_CHARACTERS if body.tools else 0)
        own = await read_text(characters, conversation_parts, scene, options, self._counter)
        recalled, excerpts, found, asked = None, None, None, None
        if off_by is None:
            asked = await self._asked(principal, body, query)
            (recalled, excerpts), found = await asyncio.gather(
                self._searched(principal, scene, body, asked, own),
                self._found(principal, scene, body, query),
            )
        near = [] if found is None else _near(found, body)
        composition = Composition(
            scene, options, own, recalled, self._counter, off_by, near, excerpts
        )
        answer = await read_text(composition.characters, composition.answer)
        answer["query"] = {
            "source": "request" if body.query else "last_user_message" if query else "none",
            "embedding_models": [] if asked is None else list(asked.by_model),
            "degraded": any(result is not None and result.degraded for result in (recalled, found))
            or (asked is not None and asked.vectors.degraded),
            "reranker": None if recalled is None else recalled.reranker,
        }
        if not body.preview:
            self._note(principal, answer, composition.beside_tokens)
            self._count(principal, scene, body, recalled, started)
        return answer

    def _count(
        self,
        principal: Principal,
        scene: Scene,
        body: ContextRequest,
        recalled: RecallResult | None,
        started: float,
    ) -> None:
        """Count the context, and whether it found something fitting, if it had a query."""
        hit, agent_id = None, scene.row["agent_id"]
        if recalled is not None and recalled.asked:
            hit = any_fitting((memory.ranked for memory in recalled.found), body.memories.threshold)
        seconds = perf_counter() - started
        self._activity.note(principal.tenant_id, agent_id, "context", self._now(), seconds, hit=hit)

    def _note(self, principal: Principal, answer: dict[str, Any], beside_tokens: int) -> None:
        """Record what is shown; to be shown is not to be used."""
        shown = ShownContext(
            memory_ids=[memory["memory_id"] for memory in answer["used"]],
            passage_ids=[passage["passage_id"] for passage in answer["used_passages"]],
            message_ids=[excerpt["message_id"] for excerpt in answer["used_excerpts"]],
            tokens=answer["tokens"],
            memory_tokens=answer["memory_tokens"],
            beside_tokens=beside_tokens,
            at=self._now(),
        )
        self._injections.note_context(
            principal.tenant_id, answer["session_id"], answer["content_sha256"], shown
        )

    async def injections(
        self, principal: Principal, session_id: str, query: InjectionQuery
    ) -> Page[InjectedContextRead]:
        """Which contents the session's contexts had, and what was put into them, newest first.

        Raises:
            SessionNotFoundError: the caller has no such session.
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_time(query.cursor, "injections")
        async with self._database.begin(principal.tenant_id) as db:
            await SessionRepository(db, principal.access).get(session_id)
            rows = await InjectionRepository(db, principal.access).list_contexts(
                session_id, content_sha256=query.content_sha256, start=start, limit=query.limit
            )
        return page(
            "injections",
            rows,
            query.limit,
            show=InjectedContextRead.model_validate,
            place=lambda row: (row.first_at, row.content_sha256),
        )

    def _memory_tokens(self, body: ContextRequest) -> int:
        return body.max_memory_tokens or self._rules.memory_tokens

    async def _read(self, principal: Principal, session_id: str, body: ContextRequest) -> Scene:
        """Raises SessionNotFoundError."""
        rows = await self._database.fetch(
            principal.tenant_id,
            CONTEXT,
            session_id,
            principal.access.agent_id,
            principal.access.user_id,
            body.window_tokens,
            self._rules.policy.budget_tokens,
            1 if body.clear_tool_results is None else FURTHER,
        )
        if not rows:
            raise SessionNotFoundError(session_id)
        [row] = rows
        policy = resolve(self._rules.policy, row["agent_policy"], row["session_policy"])
        return Scene(
            row,
            policy,
            blocks_of(row["blocks"]),
            row["summaries"],
            await self._conversation(row, policy, body),
        )

    async def _conversation(
        self, row: Mapping[str, Any], policy: WindowPolicy, body: ContextRequest
    ) -> SceneConversation:
        now = self._now()
        answerable_since = now - timedelta(hours=policy.approval_hours)
        if body.messages is None:
            characters = len(row["tail"] or "") // STORED
            return await read_text(characters, stored_conversation, row, policy, answerable_since)
        characters = sum(
            # A call or a part may be of any length.
            INLINE_CHARACTERS
            if message.tool_calls or message.content_parts
            else len(message.content)
            for message in body.messages
        )
        return await read_text(
            characters,
            given_conversation,
            body.messages,
            policy,
            answerable_since,
            now,
            self._counter,
        )

    async def _asked(
        self, principal: Principal, body: ContextRequest, query: str | None
    ) -> EmbeddedQuery | None:
        """The query for all that is searched; None when there is none, or nothing to search."""
        include = body.include
        if query is None or not (include.memories or include.corrections or include.excerpts):
            return None
        reference = body.reference_time or self._now()
        return await self._sources.embedders.embedded(principal, query, reference)

    async def _searched(
        self,
        principal: Principal,
        scene: Scene,
        body: ContextRequest,
        asked: EmbeddedQuery | None,
        own: ConversationParts,
    ) -> tuple[RecallResult | None, Excerpts | None]:
        """Memories, and pieces of what was said before, read in the same statements."""
        # Rows of the first are passed on as they come, and there are more pieces than memories.
        excerpts, recalled = await side_by_side(
            self._database,
            partial(self._excerpts, principal, scene, body, asked, own),
            partial(self._recalled, principal, scene, body, asked),
        )
        return recalled, excerpts

    async def _excerpts(
        self,
        principal: Principal,
        scene: Scene,
        body: ContextRequest,
        asked: EmbeddedQuery | None,
        own: ConversationParts,
        reads: HotReads,
    ) -> Excerpts | None:
        """Pieces of what was said before and the window does not show."""
        if asked is None or not body.include.excerpts:
            return None
        wanted = body.excerpts
        ends = [end for end in (wanted.until, body.as_of) if end is not None]
        return await self._sources.excerpts.find(
            principal,
            ExcerptQuery(
                asked,
                scene.row["user_id"],
                scene.row["agent_id"],
                roles=wanted.roles,
                since=wanted.since,
                until=min(ends, default=None),
                sessions=wanted.sessions,
                shown={spoken.message_id for spoken in own.known if spoken.message_id},
                given=[]
                if body.messages is None
                else [(each.role, each.content, each.content_parts) for each in own.known],
                session_id=scene.row["session_id"],
                tokens=self._memory_tokens(body),
                lineage=scene.lineage,
            ),
            reads,
        )

    async def _recalled(
        self,
        principal: Principal,
        scene: Scene,
        body: ContextRequest,
        asked: EmbeddedQuery | None,
        reads: HotReads,
    ) -> RecallResult | None:
        if not (body.include.memories or body.include.corrections):
            return None
        tokens, chosen = self._memory_tokens(body), body.memories
        limit = min(max(tokens // LEAST_LINE, FEWEST), MOST) if body.include.memories else 0
        corrections = 0
        if body.include.corrections:
            corrections = math.ceil(limit * CORRECTIONS_SHARE) or FEWEST
        return await self._sources.memories.recall(
            principal,
            Recall(
                asked=asked,
                scopes=scene.scopes(chosen.scopes),
                user_id=scene.row["user_id"],
                agent_id=scene.row["agent_id"],
                limit=limit,
                corrections=corrections,
                memory_types=chosen.memory_types or (),
                tier=chosen.tier,
                threshold=chosen.threshold,
                filters=chosen.filters,
                rerank=body.rerank,
                as_of=body.as_of,
                explain=body.explain,
            ),
            reads,
        )

    async def _found(
        self, principal: Principal, scene: Scene, body: ContextRequest, query: str | None
    ) -> PassageHits | None:
        """Passages of the session's folders; without a query there is nothing to look for."""
        if body.passages is None or query is None:
            return None
        scopes = scene.scopes(None)
        return await self._sources.passages.search(
            principal,
            PassageSearch(
                query=query,
                folder_ids=body.passages.folder_ids,
                user_id=scene.row["user_id"],
                agent_id=scene.row["agent_id"],
                project_id=scopes.get("project"),
                limit=body.passages.limit,
            ),
        )


def _system_prompt(scene: Scene, body: ContextRequest) -> str:
    """The instructions with their variables: the request's, the agent's, or both."""
    own, asked = scene.row["agent_prompt"], body.system_prompt
    if asked is None:
        return own or ""
    if body.system_prompt_mode == "extend":
        return "\n\n".join(text for text in (own, asked) if text)
    return asked


def _near(found: PassageHits, body: ContextRequest) -> list[PassageHit]:
    """The passages with at least the similarity that the request demands."""
    least = None if body.passages is None else body.passages.min_similarity
    if least is None:
        return found.items
    return [hit for hit in found.items if hit.similarity is None or hit.similarity >= least]
