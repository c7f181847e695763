"""What should the model see? One use case: a context for the next call."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from app.conversation.messages.schemas import CONTENT_LENGTH
from app.conversation.messages.window_strategies import StrategyFactory, pick_of
from app.conversation.sessions.errors import SessionNotFoundError
from app.conversation.sessions.policy import WindowPolicy, resolve
from app.identity.tenants.access import Principal
from app.language.llm.tokens import TokenCounter
from app.language.text.offload import INLINE_CHARACTERS, read_text
from app.memory.memories.recall_service import Recall, RecallResult, RecallService
from app.memory.memories.uses import MemoryUse
from app.platform.database.engine import Database
from app.prompting.context.assembly import CORRECTIONS_SHARE
from app.prompting.context.composition import FURTHER, Composition, Wishes
from app.prompting.context.context_sql import CONTEXT
from app.prompting.context.injections import Injections
from app.prompting.context.scene import (
    Scene,
    SceneConversation,
    blocks_of,
    given_conversation,
    stored_conversation,
)
from app.prompting.context.schemas import ContextRequest
from app.prompting.context.templates import fill
from app.prompting.documents.passage_service import PassageSearchService
from app.prompting.documents.schemas import PassageHit, PassageHits, PassageSearch

LEAST_LINE: Final = 12
"""Tokens that a remembered line has, nearly always; so more than fit need not be looked up."""

FEWEST: Final = 10
MOST: Final = 200

QUERY_LENGTH: Final = 2000
"""Characters of what the user said last that are asked with; what follows is seldom a question."""


@dataclass(frozen=True, slots=True)
class ContextRules:
    """What the deployment says about contexts."""

    policy: WindowPolicy
    memory_tokens: int
    injection_enabled: bool
    strategies: Mapping[str, StrategyFactory]


@dataclass(frozen=True, slots=True)
class Noted:
    """Where it is noted what a context showed, without waiting for anything."""

    injections: Injections
    uses: MemoryUse


class ContextService:
    def __init__(
        self,
        database: Database,
        recall: RecallService,
        passages: PassageSearchService,
        counter: TokenCounter,
        rules: ContextRules,
        noted: Noted,
        now: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._recall = recall
        self._passages = passages
        self._counter = counter
        self._rules = rules
        self._noted = noted
        self._now = now

    async def build(
        self, principal: Principal, session_id: str, body: ContextRequest
    ) -> dict[str, Any]:
        """What the model should see next: the content of a `ContextAnswer`.

        At most three statements: the session with all that belongs to it, and two of a search;
        where passages are asked for, those of a search of passages besides.
        Nothing is written; which memories are shown is noted behind the answer, so that they
        count as used and are not extracted again when they are said back.

        Raises:
            SessionNotFoundError: the caller has no such session.
            UnknownVariableError: the system prompt names what nothing has.
            LongPromptError: it is too long once its variables are replaced.
            UnknownStrategyError, InvalidStrategyError: about `strategy`.
            InvalidFilterError: the filter is none.

        """
        pick = pick_of(body.strategy, self._rules.strategies)
        scene = await self._read(principal, session_id, body)
        template, sources = body.system_prompt or "", [body.context, *scene.sources]
        # What the variables stand for may be as long as the prompt may get.
        characters = CONTENT_LENGTH if "{{" in template else 0
        instructions = await read_text(characters, fill, template, sources)
        off_by = scene.off_by(enabled=self._rules.injection_enabled)
        said = scene.conversation.last_request
        query = body.query or (said and said[:QUERY_LENGTH])
        recalled = None
        if off_by is None and (body.include.memories or body.include.corrections):
            recalled = await self._recalled(principal, scene, body, query)
        found = await self._found(principal, scene, body, query if off_by is None else None)
        composition = Composition(
            scene,
            Wishes(body, instructions, self._memory_tokens(body), pick),
            recalled,
            self._counter,
            off_by,
            [] if found is None else _near(found, body),
        )
        answer = await read_text(composition.characters, composition.answer)
        answer["query"] = {
            "source": "request" if body.query else "last_user_message" if query else "none",
            "embedding_models": [] if recalled is None else recalled.embedding_models,
            "degraded": any(one is not None and one.degraded for one in (recalled, found)),
            "reranker": None if recalled is None else recalled.reranker,
        }
        self._note(principal, session_id, body, [one["memory_id"] for one in answer["used"]])
        return answer

    def _memory_tokens(self, body: ContextRequest) -> int:
        return body.max_memory_tokens or self._rules.memory_tokens

    async def _read(self, principal: Principal, session_id: str, body: ContextRequest) -> Scene:
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
        patience = now - timedelta(hours=policy.approval_hours)
        if body.messages is None:
            return await read_text(
                len(row["tail"] or ""), stored_conversation, row, policy, patience
            )
        characters = sum(
            # A call or a part may be of any length.
            INLINE_CHARACTERS if one.tool_calls or one.content_parts else len(one.content)
            for one in body.messages
        )
        return await read_text(
            characters, given_conversation, body.messages, policy, patience, now, self._counter
        )

    async def _recalled(
        self, principal: Principal, scene: Scene, body: ContextRequest, query: str | None
    ) -> RecallResult:
        tokens, chosen = self._memory_tokens(body), body.memories
        limit = min(max(tokens // LEAST_LINE, FEWEST), MOST) if body.include.memories else 0
        corrections = 0
        if body.include.corrections:
            corrections = math.ceil(limit * CORRECTIONS_SHARE) or FEWEST
        return await self._recall.recall(
            principal,
            Recall(
                query=query,
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
                reference=body.reference_time,
                as_of=body.as_of,
            ),
        )

    async def _found(
        self, principal: Principal, scene: Scene, body: ContextRequest, query: str | None
    ) -> PassageHits | None:
        """Passages of the session's folders; without a query there is nothing to look for."""
        if body.passages is None or query is None:
            return None
        scopes = scene.scopes(None)
        return await self._passages.search(
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

    def _note(
        self, principal: Principal, session_id: str, body: ContextRequest, shown: list[str]
    ) -> None:
        now = self._now()
        self._noted.injections.note(principal.tenant_id, session_id, shown, now)
        if body.as_of is None:
            # A memory of the past was looked up, and is not in use.
            self._noted.uses.note(principal.tenant_id, shown, now)


def _near(found: PassageHits, body: ContextRequest) -> list[PassageHit]:
    """Those that are as similar as the request wants them."""
    least = None if body.passages is None else body.passages.min_similarity
    if least is None:
        return found.items
    return [one for one in found.items if one.similarity is None or one.similarity >= least]
