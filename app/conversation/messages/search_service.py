"""Searching what was said: at most three statements, and a page of what they found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import asyncpg
import numpy as np

from app.conversation.messages.errors import MessageNotFoundError
from app.conversation.messages.excerpt_ranking import rated_messages
from app.conversation.messages.excerpt_search import CANDIDATES, compared
from app.conversation.messages.message_ranking import (
    HybridRanking,
    MessageRankingRules,
    MessageSearchPosition,
    RankedMessage,
    RankedPage,
    decode,
    fingerprint,
    fitting_hits,
    newest_of,
    next_page,
    ranked,
)
from app.conversation.messages.models import Message
from app.conversation.messages.repository import AnyMessageRepository
from app.conversation.messages.schemas import MessageRead
from app.conversation.messages.search_schemas import MessageSearch, MessageSlice, MessageSliceQuery
from app.conversation.messages.search_sql import (
    MOST_MESSAGES,
    MessagePlan,
    features_statement,
    hits_statement,
)
from app.conversation.sessions.models import Session
from app.conversation.sessions.repository import SessionRepository
from app.errors import SelectorRequiredError
from app.identity.agents.embedders import Embedders, QueryVectors
from app.identity.tenants.access import Principal
from app.identity.users.service import for_default_user, resolve_subject
from app.language.llm.content_parts import without_media
from app.language.llm.tokens import TokenCounter
from app.language.ranking.boosts import Boosts
from app.language.ranking.packing import packed_query
from app.language.ranking.query import parsed_query
from app.language.ranking.records import read_records
from app.language.text.offload import in_turn
from app.language.text.prompt_text import time_ago
from app.platform.database.engine import Database
from app.platform.observability.metrics import MESSAGE_SEARCHES

SELECTORS: Final = ("session_id", "user_id", "agent_id")

_OF_A_PAGE: Final = {"limit", "cursor", "max_tokens", "explain", "reference_time"}


@dataclass(frozen=True, slots=True)
class _Ranking:
    """A page of a ranking, and what was looked at for it.

    Args:
        newest: when the newest message looked at was stored.
        searched: how many were looked at, of which nothing could compare `waiting`.
        left_out: whether there are older ones.

    """

    page: RankedPage
    newest: datetime
    searched: int
    waiting: int
    left_out: bool


class MessageSearchService:
    def __init__(
        self,
        database: Database,
        embedders: Embedders,
        boosts: Boosts,
        now: Callable[[], datetime],
        tags: Sequence[str],
        *,
        counter: TokenCounter,
        most: int = MOST_MESSAGES,
    ) -> None:
        """Let one search look at `most` messages, the newest; blocks of `tags` are no part of their
        text.
        """
        self._database = database
        self._embedders = embedders
        self._boosts = boosts
        self._now = now
        self._tags = tags
        self._counter = counter
        self._most = most

    async def search(
        self, principal: Principal, body: MessageSearch, *, remembered: bool = False
    ) -> dict[str, Any]:
        """What was said about a query, best first: the content of a `MessageSearchAnswer`.

        Of several ids all must fit; an unknown session, user or agent has no messages, which is no
        error. Without an embedder that answers, a hybrid search goes by words and context alone.

        Args:
            principal: who asks.
            body: what for.
            remembered: leave out what was said while memory was paused, and what a return to a
                checkpoint has set aside.

        Raises:
            SelectorRequiredError: neither the request nor the key names whose.
            UserNotFoundError, AgentNotFoundError: the key is restricted to another.
            OtherSearchError: the cursor is of another search.
            EmbeddingUnavailableError: no embedder answers, and the mode is `semantic`; safe to
                retry.

        """
        body = for_default_user(principal, body)
        user_id, agent_id = resolve_subject(principal.access, body.user_id, body.agent_id)
        if body.session_id is None and user_id is None and agent_id is None:
            raise SelectorRequiredError("body", SELECTORS)
        search = _fingerprint(principal, body)
        reached = None if body.cursor is None else decode(body.cursor, search)
        reference = body.reference_time or (reached.reference if reached else self._now())
        plan, query = await self._plan(principal, body, reached, reference, remembered=remembered)
        ranking = await self._rank(principal, plan, body, reached, self._weighed(body, query))
        page = ranking.page
        rows = await self._fetch(principal, plan, [hit.message_id for hit in page.hits])
        hits = fitting_hits(page.hits, rows, self._counter, body.max_tokens)
        MESSAGE_SEARCHES.labels("found" if rows else "empty").inc()
        return {
            "items": [
                _hit(row, hit, reference, explain=body.explain)
                for hit in hits
                if (row := rows.get(hit.message_id)) is not None
            ],
            "next_cursor": next_page(page, hits, reached, (ranking.newest, reference), search),
            "embedding_models": list(plan.vectors),
            "waiting": ranking.waiting,
            "searched": ranking.searched,
            "left_out": ranking.left_out,
            "degraded": query.degraded,
            "mode": body.mode,
        }

    async def get_for_model(
        self, principal: Principal, session_id: str | None, message_id: str
    ) -> MessageSlice:
        """A message that the model of a session may read: of it, or of another session of the same
        user and agent, where a search of what is remembered may show it. Without a session, what
        such a search of all the caller's sessions may show.

        Raises:
            SessionNotFoundError, MessageNotFoundError: there is none for this caller.

        """
        async with self._database.begin(principal.tenant_id) as db:
            sessions = SessionRepository(db, principal.access)
            here = None if session_id is None else await sessions.get(session_id)
            found = await AnyMessageRepository(db, principal.access).get(message_id)
            there = await sessions.find(found.session_id)
            if there is None or not _may_read(here, there, found):
                raise MessageNotFoundError(message_id)
            return MessageSlice.of(MessageRead.model_validate(found), MessageSliceQuery())

    def _weighed(self, body: MessageSearch, query: QueryVectors) -> Boosts:
        share = query.dense_share
        boosts = self._boosts.with_changes(body.boosts or {})
        return boosts.with_dense(latin=share.latin, cjk=share.cjk)

    async def _plan(
        self,
        principal: Principal,
        body: MessageSearch,
        reached: MessageSearchPosition | None,
        reference: datetime,
        *,
        remembered: bool,
    ) -> tuple[MessagePlan, QueryVectors]:
        asked = await parsed_query(body.query, reference)
        query = QueryVectors()
        if body.mode != "lexical":
            texts = [body.query, *(asked.ranked_texts if body.mode == "hybrid" else ())]
            query = await self._embedders.for_query(
                principal, texts, required=body.mode == "semantic"
            )
        if body.mode == "hybrid":
            asked = asked.embedded(query.by_model)
        elif body.mode == "semantic":
            asked = replace(asked, packed=packed_query(()))
        user_id, agent_id = resolve_subject(principal.access, body.user_id, body.agent_id)
        plan = MessagePlan(
            access=principal.access,
            vectors={model: rows[0] for model, rows in query.by_model.items()},
            asked=asked,
            session_id=body.session_id,
            user_id=user_id,
            agent_id=agent_id,
            roles=body.roles,
            since=body.since,
            until=body.until,
            newest=reached.newest if reached else None,
            most=self._most,
            remembered=remembered,
        )
        return plan, query

    async def _rank(
        self,
        principal: Principal,
        plan: MessagePlan,
        body: MessageSearch,
        reached: MessageSearchPosition | None,
        boosts: Boosts,
    ) -> _Ranking:
        text, values, columns = features_statement(plan)
        [seen] = await self._database.fetch(principal.tenant_id, text, *values)
        ids: Sequence[str] = seen["ids"] or ()
        records = read_records(seen["records"], columns)
        cut = MessageRankingRules(body.mode, body.threshold, body.limit, reached)
        work = plan.asked.products(len(ids))
        hybrid = None
        if body.mode == "hybrid" and ids:
            rated = await in_turn(
                work, rated_messages, ids, records, plan.asked, boosts, (), CANDIDATES
            )
            pieces = await compared(self._database, principal, plan, ids, rated, self._tags)
            hybrid = HybridRanking.by_pieces(rated, pieces)
        page = await in_turn(work, ranked, ids, records, plan.asked, cut, hybrid)
        waiting = 0
        if body.mode != "lexical":
            waiting = int(np.count_nonzero(np.isnan(records["similarity"].astype(np.float32))))
        newest = plan.newest or newest_of(records)
        return _Ranking(page, newest, len(ids), waiting, left_out=seen["left_out"])

    async def _fetch(
        self, principal: Principal, plan: MessagePlan, message_ids: Sequence[str]
    ) -> dict[str, asyncpg.Record]:
        """What is still there of some messages, by id."""
        if not message_ids:
            return {}
        text, values = hits_statement(plan, message_ids)
        rows = await self._database.fetch(principal.tenant_id, text, *values)
        return {row["message_id"]: row for row in rows}


def _fingerprint(principal: Principal, body: MessageSearch) -> str:
    """Hash of caller and request; the time of the search is in the cursor, unless the request
    has it.
    """
    asked = body.model_dump(mode="json", exclude=_OF_A_PAGE)
    return fingerprint(
        asked
        | {
            "reference": body.reference_time and body.reference_time.isoformat(),
            "key": [principal.access.user_id, principal.access.agent_id],
            "roles": sorted(set(body.roles)),
        }
    )


def _piece(ranking: RankedMessage) -> dict[str, Any] | None:
    """The piece that fits best, of a message that has several."""
    best = ranking.piece
    if best is None or len(best.message.ends) == 1:
        return None
    message, number = best.message, best.number
    shown = range(max(number - 1, 0), min(number + 2, len(message.ends)))
    return {
        "number": number,
        "of": len(message.ends),
        "text": message.shown(shown).strip(),
        "similarity": best.similarity,
    }


def _hit(
    row: asyncpg.Record, ranking: RankedMessage, reference: datetime, *, explain: bool
) -> dict[str, Any]:
    """A hit as `search_schemas.MessageHit` shows it."""
    elapsed = reference - row["said_at"]
    scores: dict[str, Any] = {
        "score": ranking.relevance,
        "relevance": ranking.relevance,
        "similarity": ranking.similarity,
        "lexical": ranking.lexical,
        "explain": None,
    }
    if explain:
        scores["explain"] = {
            "cosine": ranking.similarity,
            "lexical": ranking.lexical,
            "fused": ranking.relevance,
            "boosts": dict(ranking.boosts),
            "pieces": ranking.piece.signals if ranking.piece and ranking.by_pieces else None,
        }
    parts = row["content_parts"]
    return {
        **row,
        **scores,
        "content_parts": parts and without_media(parts, row["message_id"], inline_only=True),
        "said_ago": time_ago(elapsed),
        "said_ago_seconds": round(elapsed.total_seconds()),
        "piece": _piece(ranking),
    }


def _may_read(here: Session | None, there: Session, message: Message) -> bool:
    """Whether the model of one session, or of none, may read a message of one that its caller may
    see.
    """
    if here is not None and here.session_id == there.session_id:
        return True
    return (
        (here is None or (here.user_id, here.agent_id) == (there.user_id, there.agent_id))
        and message.captured
        and message.role != "system"
        and not any(message.sequence_no in omitted for omitted in there.set_aside)
    )
