"""Searching passages: which folders, what is known of each passage, and the few chosen."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import asyncpg
import numpy as np

from app.conversation.messages.message_ranking import MessageRankingRules, RankedMessage, ranked
from app.errors import SelectorRequiredError
from app.identity.agents.embedders import Embedders, QueryVectors
from app.identity.tenants.access import Principal
from app.language.ranking.boosts import Boosts
from app.language.ranking.packing import packed_query
from app.language.ranking.query import parsed_query
from app.language.ranking.records import read_records
from app.language.text.offload import in_turn
from app.platform.database.engine import Database
from app.prompting.documents.repository import FolderRepository
from app.prompting.documents.search_schemas import (
    PassageHit,
    PassageHits,
    PassageScoreExplained,
    PassageSearch,
)
from app.prompting.documents.search_sql import (
    MOST_PASSAGES,
    PassagePlan,
    features_statement,
    hits_statement,
)

SELECTORS: Final = ("folder_ids", "user_id", "agent_id", "project_id")


class PassageSearchService:
    def __init__(
        self,
        database: Database,
        embedders: Embedders,
        boosts: Boosts,
        now: Callable[[], datetime],
        most: int = MOST_PASSAGES,
    ) -> None:
        self._database = database
        self._embedders = embedders
        self._boosts = boosts
        self._now = now
        self._most = most

    async def search(self, principal: Principal, body: PassageSearch) -> PassageHits:
        """The passages that answer a query best, of the folders that the caller may see.

        A folder, user, agent or project nobody has heard of has none, which is no error. A key of
        a user or an agent may leave them out: it sees few folders. Where no embedder answers,
        words decide, and the answer says so.

        Raises:
            SelectorRequiredError: neither the request nor the key names whose.

        """
        named = any(getattr(body, name) is not None for name in SELECTORS)
        if not named and not principal.access.restricted:
            raise SelectorRequiredError("body", SELECTORS)
        if not body.query.strip():
            return _nothing(body.mode)
        async with self._database.begin(principal.tenant_id) as db:
            folder_ids = await FolderRepository(db, principal.access).ids(
                among=body.folder_ids,
                user_id=body.user_id,
                agent_id=body.agent_id,
                project_id=body.project_id,
            )
        if not folder_ids:
            return _nothing(body.mode)
        plan, query, mode = await self._plan(principal, body, folder_ids)
        text, values, columns = features_statement(plan)
        [seen] = await self._database.fetch(principal.tenant_id, text, *values)
        ids: Sequence[str] = seen["ids"] or ()
        records = read_records(seen["records"], columns)
        share = query.dense_share
        boosts = self._boosts.with_dense(latin=share.latin, cjk=share.cjk)
        cut = MessageRankingRules(mode, None, body.limit)
        work = plan.asked.products(len(ids))
        page = await in_turn(work, ranked, ids, records, plan.asked, boosts, cut)
        waiting = 0
        if mode != "lexical":
            waiting = int(np.count_nonzero(np.isnan(records["similarity"].astype(np.float32))))
        rows = await self._fetch(principal, plan, [one.message_id for one in page.hits])
        return PassageHits(
            items=[
                _hit(rows[one.message_id], one, explain=body.explain)
                for one in page.hits
                if one.message_id in rows
            ],
            embedding_models=list(plan.vectors),
            waiting=waiting,
            searched=len(ids),
            left_out=seen["left_out"],
            degraded=query.degraded,
            mode=mode,
        )

    async def _plan(
        self, principal: Principal, body: PassageSearch, folder_ids: Sequence[str]
    ) -> tuple[PassagePlan, QueryVectors, str]:
        asked = await parsed_query(body.query, self._now())
        query, mode = QueryVectors(), body.mode
        if mode != "lexical":
            texts = [body.query, *(asked.ranked_texts if mode == "hybrid" else ())]
            query = await self._embedders.for_query(principal, texts, required=False)
            if not query.by_model:
                mode = "lexical"
        if mode == "hybrid":
            asked = asked.embedded(query.by_model)
        elif mode == "semantic":
            asked = replace(asked, packed=packed_query(()))
        plan = PassagePlan(
            folder_ids=folder_ids,
            vectors={model: rows[0] for model, rows in query.by_model.items()},
            asked=asked,
            tags=body.tags,
            tags_match=body.tags_match,
            created_from=body.created_from,
            created_to=body.created_to,
            most=self._most,
        )
        return plan, query, mode

    async def _fetch(
        self, principal: Principal, plan: PassagePlan, passage_ids: Sequence[str]
    ) -> dict[str, asyncpg.Record]:
        """What is still there of some passages, by id."""
        if not passage_ids:
            return {}
        text, values = hits_statement(plan, passage_ids)
        rows = await self._database.fetch(principal.tenant_id, text, *values)
        return {row["passage_id"]: row for row in rows}


def _nothing(mode: str) -> PassageHits:
    return PassageHits.model_validate(
        {
            "items": [],
            "embedding_models": [],
            "waiting": 0,
            "searched": 0,
            "left_out": False,
            "degraded": False,
            "mode": mode,
        }
    )


def _hit(row: asyncpg.Record, ranking: RankedMessage, *, explain: bool) -> PassageHit:
    told = None
    if explain:
        told = PassageScoreExplained(
            cosine=ranking.similarity,
            lexical=ranking.lexical,
            fused=ranking.relevance,
            boosts=dict(ranking.boosts),
        )
    return PassageHit.model_validate(
        dict(row)
        | {
            "score": ranking.relevance,
            "relevance": ranking.relevance,
            "similarity": ranking.similarity,
            "lexical": ranking.lexical,
            "explain": told,
        }
    )
