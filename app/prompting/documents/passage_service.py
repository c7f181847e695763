"""Use cases of passages: add texts to a folder, read and delete passages, and search them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

import asyncpg
import numpy as np

from app.conversation.messages.message_ranking import (
    HybridRanking,
    MessageRankingRules,
    MessageSearchPosition,
    RankedMessage,
    decode,
    fingerprint,
    fitting_hits,
    newest_of,
    next_page,
    ranked,
)
from app.errors import SelectorRequiredError
from app.identity.agents.embedders import Embedders, QueryVectors, embed
from app.identity.tenants.access import Principal
from app.identity.tenants.repository import TenantRepository
from app.language.llm.tokens import TokenCounter, fitting
from app.language.parsing.passages import text_passages
from app.language.ranking.boosts import Boosts
from app.language.ranking.packing import packed_query
from app.language.ranking.query import parsed_query
from app.language.ranking.records import Records, read_records
from app.language.text.offload import in_turn, read_text
from app.platform.database.engine import Database
from app.platform.values.pagination import ContentQuery, Page, decode_number, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.documents.file_repository import FileRepository
from app.prompting.documents.models import Passage
from app.prompting.documents.passage_repository import PassageRepository, rows_of
from app.prompting.documents.repository import FolderRepository
from app.prompting.documents.schemas import (
    PassageCreate,
    PassageHit,
    PassageHits,
    PassageRead,
    PassagesAdded,
    PassageScoreExplained,
    PassageSearch,
)
from app.prompting.documents.search_sql import (
    MOST_PASSAGES,
    PassagePlan,
    features_statement,
    hits_statement,
)
from app.prompting.documents.service import writable_folder


class PassageService:
    def __init__(self, work: Work, embedders: Embedders, counter: TokenCounter) -> None:
        self._work = work
        self._embedders = embedders
        self._counter = counter

    async def add(
        self,
        principal: Principal,
        folder_id: str,
        body: PassageCreate,
        *,
        key: IdempotencyKey | None = None,
    ) -> PassagesAdded:
        """Add a text to a folder, as several passages if it is long; returns them in order.

        Raises:
            EmbeddingUnavailableError: nothing was stored; try again.
            UnknownEmbedderError: this deployment does not have the embedder in force.
            FolderNotFoundError, KeyRestrictedError, InsufficientScopeError, ReadOnlyMemberError,
            DisabledError: as in `writable_folder`.

        """
        self._work.refuse_disabled()
        async with self._work.read(principal, key) as db:
            folder = await writable_folder(db, principal, folder_id)
        length = 4 * len(body.content)
        cut = await read_text(length, text_passages, body.content)
        embedder = await self._embedders.for_writing(principal, folder.agent_id)
        vectors = await embed(embedder, [piece.content for piece in cut])
        rows = await read_text(
            length,
            rows_of,
            cut,
            folder_id=folder_id,
            file_id=None,
            first=0,
            tags=list(dict.fromkeys(body.tags)),
            creator=principal.key_id,
        )
        for row, vector in zip(rows, vectors, strict=True):
            row |= {"embedding": vector, "embedding_model": embedder.name}
            if body.create_time is not None:
                row["create_time"] = body.create_time
        async with self._work.write(principal, key) as unit:
            folder = await writable_folder(unit.db, principal, folder_id, lock=True)
            await TenantRepository(unit.db, principal.tenant_id).note_model(embedder.name)
            passages = PassageRepository(unit.db, principal.access)
            await passages.add_all(rows)
            stored = await passages.of([row["passage_id"] for row in rows])
            answer = PassagesAdded(
                items=[PassageRead.model_validate(passage) for passage in stored],
                embedding_model=embedder.name,
            )
            return unit.answer(answer, 201, user_id=folder.user_id)

    async def get(self, principal: Principal, folder_id: str, passage_id: str) -> PassageRead:
        """A passage of a folder.

        Raises:
            FolderNotFoundError, PassageNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            await FolderRepository(db, principal.access).get(folder_id)
            row = await PassageRepository(db, principal.access).get(folder_id, passage_id)
            return PassageRead.model_validate(row)

    async def list_passages(
        self, principal: Principal, folder_id: str, query: ContentQuery
    ) -> Page[PassageRead]:
        """Passages of a folder, newest first.

        Raises:
            FolderNotFoundError: there is none for this caller.
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_time(query.cursor, "passages")
        async with self._work.read(principal) as db:
            await FolderRepository(db, principal.access).get(folder_id)
            rows = await PassageRepository(db, principal.access).list_passages(
                folder_id, start=start, limit=query.limit
            )
        return page(
            "passages",
            rows,
            query.limit,
            show=PassageRead.model_validate,
            place=lambda row: (row.create_time, row.passage_id),
            fits=partial(self._fits, query),
        )

    async def list_of_file(
        self, principal: Principal, folder_id: str, file_id: str, query: ContentQuery
    ) -> Page[PassageRead]:
        """Passages of a file, in their order in it.

        Raises:
            FileNotFoundInFolderError: there is none for this caller.
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_number(query.cursor, "file_passages")
        async with self._work.read(principal) as db:
            await FileRepository(db, principal.access).get(folder_id, file_id)
            rows = await PassageRepository(db, principal.access).list_of_file(
                file_id, start=start, limit=query.limit
            )

        def position(row: Passage) -> tuple[int, str]:
            return row.ordinal, row.passage_id

        return page(
            "file_passages",
            rows,
            query.limit,
            show=PassageRead.model_validate,
            place=position,
            fits=partial(self._fits, query),
        )

    def _fits(self, query: ContentQuery, items: Sequence[PassageRead]) -> int:
        return fitting(self._counter, (item.content for item in items), query.max_tokens)

    async def delete(self, principal: Principal, folder_id: str, passage_id: str) -> None:
        """Delete a passage; the other passages of its file stay.

        Raises:
            PassageNotFoundError: the folder has no such passage.
            FolderNotFoundError, KeyRestrictedError, InsufficientScopeError, ReadOnlyMemberError,
            DisabledError: as in `writable_folder`.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            await writable_folder(unit.db, principal, folder_id, lock=True)
            passages = PassageRepository(unit.db, principal.access)
            passage = await passages.get(folder_id, passage_id)
            if passage.file_id is not None:
                # The file before its passages, in the order of the job that reads it anew.
                await FileRepository(unit.db, principal.access).get(
                    folder_id, passage.file_id, lock=True
                )
            await passages.delete(passage)


SELECTORS: Final = ("folder_ids", "user_id", "agent_id", "project_id")


class PassageSearchService:
    def __init__(
        self,
        database: Database,
        embedders: Embedders,
        boosts: Boosts,
        now: Callable[[], datetime],
        counter: TokenCounter,
        most: int = MOST_PASSAGES,
    ) -> None:
        self._database = database
        self._embedders = embedders
        self._boosts = boosts
        self._now = now
        self._counter = counter
        self._most = most

    async def search(self, principal: Principal, body: PassageSearch) -> PassageHits:
        """The passages that answer a query best, of the folders that the caller may see.

        An unknown folder, user, agent or project has none, which is no error. A key of
        a user or an agent may leave them out: it sees few folders. Where no embedder answers,
        words decide, and `degraded` of the answer is set.

        Raises:
            SelectorRequiredError: neither the request nor the key selects any folder.
            OtherSearchError: the cursor is of another search.

        """
        search = _fingerprint(principal, body)
        reached = None if body.cursor is None else decode(body.cursor, search)
        reference = reached.reference if reached else self._now()
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
        plan, query, mode = await self._plan(principal, body, folder_ids, reference, reached)
        text, values, columns = features_statement(plan)
        [seen] = await self._database.fetch(principal.tenant_id, text, *values)
        ids: Sequence[str] = seen["ids"] or ()
        records = read_records(seen["records"], columns)
        newest = plan.newest or newest_of(records)
        share = query.dense_share
        boosts = self._boosts.with_dense(latin=share.latin, cjk=share.cjk)
        cut = MessageRankingRules(mode, None, body.limit, reached)
        work = plan.asked.products(len(ids))
        hybrid = None
        if mode == "hybrid" and ids:
            hybrid = await in_turn(work, HybridRanking.of, ids, records, plan.asked, boosts)
        page = await in_turn(work, ranked, ids, records, plan.asked, cut, hybrid)
        rows = await self._fetch(principal, plan, [hit.message_id for hit in page.hits])
        hits = fitting_hits(page.hits, rows, self._counter, body.max_tokens)
        return PassageHits(
            items=[
                _hit(rows[hit.message_id], hit, explain=body.explain)
                for hit in hits
                if hit.message_id in rows
            ],
            next_cursor=next_page(page, hits, reached, (newest, reference), search),
            embedding_models=list(plan.vectors),
            waiting=0 if mode == "lexical" else _without_vector(records),
            searched=len(ids),
            left_out=seen["left_out"],
            degraded=query.degraded,
            mode=mode,
        )

    async def _plan(
        self,
        principal: Principal,
        body: PassageSearch,
        folder_ids: Sequence[str],
        reference: datetime,
        reached: MessageSearchPosition | None,
    ) -> tuple[PassagePlan, QueryVectors, str]:
        asked = await parsed_query(body.query, reference)
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
            newest=reached.newest if reached else None,
            most=self._most,
        )
        return plan, query, mode

    async def _fetch(
        self, principal: Principal, plan: PassagePlan, passage_ids: Sequence[str]
    ) -> dict[str, asyncpg.Record]:
        """The passages with these ids that still exist, by id."""
        if not passage_ids:
            return {}
        text, values = hits_statement(plan, passage_ids)
        rows = await self._database.fetch(principal.tenant_id, text, *values)
        return {row["passage_id"]: row for row in rows}


def _fingerprint(principal: Principal, body: PassageSearch) -> str:
    asked = body.model_dump(mode="json", exclude={"limit", "cursor", "max_tokens", "explain"})
    return fingerprint(asked | {"key": [principal.access.user_id, principal.access.agent_id]})


def _without_vector(records: Records) -> int:
    return int(np.count_nonzero(np.isnan(records["similarity"].astype(np.float32))))


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
    explanation = None
    if explain:
        explanation = PassageScoreExplained(
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
            "explain": explanation,
        }
    )
