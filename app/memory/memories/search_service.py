"""Search: which buckets and vectors, at most two statements, and what is counted afterwards."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter
from typing import Any, Final

from app.conversation.messages.message_ranking import (
    MessageSearchPosition,
    decode,
    encode,
    fingerprint,
    marks,
)
from app.errors import SelectorRequiredError
from app.identity.agents.config import Processing
from app.identity.agents.embedders import Embedders, QueryVectors, Spending
from app.identity.projects.schemas import ProjectNotFoundError
from app.identity.tenants.access import Principal
from app.identity.usage.activity import Activity
from app.identity.users.service import for_default_user, resolve_subject
from app.language.llm.reranker import RERANK_CANDIDATES, Reranker
from app.language.llm.tokens import TokenCounter, fitting
from app.language.ranking.boosts import Boosts
from app.language.ranking.query import parsed_query
from app.language.text.names import name_keys
from app.memory.memories.candidate_search import (
    CountedReranker,
    Found,
    any_fitting,
    by_all,
    by_reranker,
    by_vectors,
    ended_last,
    hit,
    newer_first,
)
from app.memory.memories.graph_sql import MOST_KEYS
from app.memory.memories.hybrid import RankWeights, ScopeWeights
from app.memory.memories.large_buckets import LargeBuckets
from app.memory.memories.processors import Annotated, after_search
from app.memory.memories.prompt_lines import render
from app.memory.memories.search_schemas import SearchRequest
from app.memory.memories.search_sql import (
    COLUMNS,
    Bucket,
    SearchPlan,
    waiting_statement,
)
from app.memory.memories.timeline_sql import known_waiting_statement
from app.memory.memories.uses import MemoryUse
from app.memory.memories.validity_sql import VALIDITY
from app.platform.database.engine import Database
from app.platform.observability.metrics import SEARCHES
from app.platform.plugins.points import About

# A user who is no member finds what is public; a project with nothing public is not found.
_MAY_READ_PROJECT = """
SELECT membership.member FROM (
    SELECT (CAST($3 AS text) IS NULL OR EXISTS (
            SELECT 1 FROM project_members AS member
            WHERE member.tenant_id = tenant.id AND member.project_id = projects.project_id
                AND member.user_id = CAST($3 AS text)))
        AND (CAST($4 AS text) IS NULL OR EXISTS (
            SELECT 1 FROM project_members AS member JOIN users
                ON users.tenant_id = tenant.id AND users.user_id = member.user_id
            WHERE member.tenant_id = tenant.id AND member.project_id = projects.project_id
                AND users.agent_id = CAST($4 AS text)
                AND (CAST($5 AS text) IS NULL OR users.user_id = CAST($5 AS text)))) AS member
    FROM projects
    WHERE projects.tenant_id = tenant.id AND projects.project_id = CAST($2 AS text)
) AS membership
WHERE membership.member OR EXISTS (
    SELECT 1 FROM users
    WHERE users.tenant_id = tenant.id
        AND (CAST($3 AS text) IS NULL OR users.user_id = CAST($3 AS text))
        AND (CAST($4 AS text) IS NULL OR users.agent_id = CAST($4 AS text))
) AND EXISTS (
    SELECT 1 FROM memories
    WHERE memories.tenant_id = tenant.id AND memories.scope_id = CAST($2 AS text)
        AND memories.scope = 'project' AND memories.status = 'active'
        AND memories.visibility = 'public'
        AND (CAST($4 AS text) IS NULL OR memories.agent_id IS NULL
            OR memories.agent_id = CAST($4 AS text)))
"""

GRAPH_WEIGHT: Final = 0.3
"""Of the graph, where a request asks for it and the deployment gives it none."""

_USER_OF_SESSION = """
SELECT sessions.user_id FROM sessions
WHERE sessions.tenant_id = tenant.id AND sessions.session_id = CAST($2 AS text)
"""

_OF_A_PAGE: Final = {"limit", "cursor", "max_tokens", "explain", "format"}

_SELECTORS = ("user_id", "agent_id", "session_id", "run_id", "project_id")


@dataclass(frozen=True, slots=True)
class SearchRanks:
    """What the deployment says about the order of hits."""

    weights: RankWeights
    scopes: ScopeWeights
    boosts: Boosts


class SearchService:
    """Searches memories."""

    def __init__(
        self,
        database: Database,
        embedders: Embedders,
        uses: MemoryUse,
        ranks: SearchRanks,
        reranker: Reranker | None,
        spending: Spending,
        now: Callable[[], datetime],
        processing: Processing,
        counter: TokenCounter,
        activity: Activity,
        large: LargeBuckets,
    ) -> None:
        self._database = database
        self._embedders = embedders
        self._uses = uses
        self._weights = ranks.weights
        self._scopes = ranks.scopes.by_scope
        self._boosts = ranks.boosts
        self._reranker = reranker
        self._spending = spending
        self._now = now
        self._processing = processing
        self._counter = counter
        self._activity = activity
        self._large = large

    async def search(
        self, principal: Principal, body: SearchRequest, *, around: bool = False
    ) -> dict[str, Any]:
        """What is remembered about a query, best first: the content of a `SearchAnswer`.

        The scopes named are merged: the session's memories, the project's (what is public of
        it, when the user is no member), the user's, the agent's. Order: 0.5 relevance + 0.3
        confidence + 0.2 scope, then the reranker's if there is one; or similarity alone
        with `rerank` false. Of two in conflict on a page the newer comes first. An
        unknown user or session has no memories, which is no error: every conversation begins so.
        `run_id` leaves out what did not come from that session. Writes nothing but counts of uses.

        Without an embedder that answers, a hybrid search goes by words and context alone; a
        lexical one asks none.

        With `as_of` what was true then is searched, with `known_at` what the records said
        then, each by the words it had; a hit of the past does not count as a use. With `around`
        and neither of the two, what begins later is found too, and behind all others what has
        just ended; a hit has `validity` then.

        Raises:
            SelectorRequiredError: no scope is named.
            ProjectNotFoundError: missing, or the user is no member and nothing is public.
            UserNotFoundError, AgentNotFoundError: the key is restricted to another one.
            OtherSearchError: the cursor is of another search.
            InvalidFilterError: the filter is not in our grammar.
            EmbeddingUnavailableError: no embedder answers, and the mode is `semantic`; safe to
                retry.
            ProcessorFailedError: one of the agent's failed that may not.

        """
        started = perf_counter()
        body = for_default_user(principal, body)
        asked, reached = body, _reached(principal, body)
        reference = body.reference_time or (reached.reference if reached else self._now())
        body = body.model_copy(update={"reference_time": reference})
        plan = await self._plan(principal, body, reached, around=around)
        found = await self._find(principal, plan, body)
        found, reranker, failed = await self._judged(principal, body, found)
        found, more = self._page(ended_last(found), body, reached)
        seen = [match.ranked.memory_id for match in found]
        found = ended_last(newer_first(found))
        # Of every row that the first page looked at none was stored later.
        newest = plan.newest or max((match.row["looked_at"] for match in found), default=reference)
        times = newest, reference
        shown = await self._processed(principal, plan, body.query, found)
        found = shown.found
        waiting = await self._waiting(principal, plan) if body.mode != "lexical" else 0
        self._note(principal, plan, found, None if body.preview else started)
        return {
            "results": [self._hit(match, plan, body, shown) for match in found],
            "next_cursor": _cursor(principal, asked, reached, seen, times) if more else None,
            "embedding_models": list(plan.vectors),
            "waiting": waiting,
            "degraded": plan.degraded or failed,
            "mode": body.mode,
            "reranker": reranker,
            "prompt": render([match.row for match in found]) if body.format == "text" else None,
        }

    def _hit(
        self, match: Found, plan: SearchPlan, body: SearchRequest, shown: Annotated
    ) -> dict[str, Any]:
        compared = body.mode != "lexical"
        row = hit(match, plan.columns, self._weights, compared=compared, explain=body.explain)
        row["annotations"] = shown.annotations.get(match.ranked.memory_id)
        return row

    def _note(
        self, principal: Principal, plan: SearchPlan, found: list[Found], started: float | None
    ) -> None:
        """Count the search, and the uses of what it found; of the past nothing is used.

        Args:
            started: None for a preview, which leaves no trace.

        """
        SEARCHES.labels("found" if found else "empty").inc()
        if started is None:
            return
        tenant_id, now, seconds = principal.tenant_id, self._now(), perf_counter() - started
        hit = any_fitting((match.ranked for match in found), plan.threshold)
        self._activity.note(tenant_id, plan.agent_id, "search", now, seconds, hit=hit)
        if plan.as_of is None and plan.known_at is None:
            self._uses.note(tenant_id, (match.ranked.memory_id for match in found), now)

    def _page(
        self, found: list[Found], body: SearchRequest, reached: MessageSearchPosition | None
    ) -> tuple[list[Found], bool]:
        """What follows the hits that were seen, as far as it may be on a page, and whether more
        follows.

        Conflicts order hits within their page alone: further pages look at more hits, and a newer
        one among these that moved before what was seen would be on no page.
        """
        if reached is not None:
            ids = [match.ranked.memory_id for match in found]
            found = [found[number] for number in reached.unseen(ids)]
        fits = fitting(
            self._counter, (match.row["content"] for match in found[: body.limit]), body.max_tokens
        )
        return found[:fits], len(found) > fits

    async def _judged(
        self, principal: Principal, body: SearchRequest, found: list[Found]
    ) -> tuple[list[Found], str | None, bool]:
        """The hits in the reranker's order, its name if it gave one, and whether it failed."""
        if not body.rerank or self._reranker is None or not found:
            return found, None, False
        counted = CountedReranker(self._reranker, self._spending, principal.tenant_id)
        found, judged = await by_reranker(counted, body.query, found)
        return found, self._reranker.name if judged else None, not judged

    async def _processed(
        self, principal: Principal, plan: SearchPlan, query: str, found: list[Found]
    ) -> Annotated:
        chain = await self._processing.of_agent(principal, plan.agent_id)
        about = About(principal.tenant_id, plan.user_id, plan.agent_id)
        return await after_search(chain, about, query, found)

    async def _find(
        self, principal: Principal, plan: SearchPlan, body: SearchRequest
    ) -> list[Found]:
        if plan.asked is None:
            return await by_vectors(self._database, plan, self._large)
        share = plan.dense_share
        boosts = self._weighed(body).with_dense(latin=share.latin, cjk=share.cjk)
        return await by_all(
            self._database, principal.tenant_id, plan, plan.asked, boosts, self._large
        )

    def _weighed(self, body: SearchRequest) -> Boosts:
        """The weights of a request; the graph has one where it is wanted."""
        boosts = self._boosts.with_changes(body.boosts or {})
        if body.graph is None or (body.graph and boosts.graph > 0):
            return boosts
        return boosts.with_changes({"graph": GRAPH_WEIGHT if body.graph else 0.0})

    def _names(self, body: SearchRequest) -> list[str]:
        """What the graph is asked for; nothing where it has no weight."""
        if body.mode != "hybrid" or self._weighed(body).graph <= 0:
            return []
        return name_keys(body.query, most=MOST_KEYS)

    async def _plan(
        self,
        principal: Principal,
        body: SearchRequest,
        reached: MessageSearchPosition | None = None,
        *,
        around: bool = False,
    ) -> SearchPlan:
        access = principal.access
        user_id, agent_id = resolve_subject(access, body.user_id, body.agent_id)
        member = body.project_id is None or await self._is_member(
            principal, body.project_id, user_id
        )
        buckets = await self._buckets(principal, body, user_id, agent_id)
        asked = None
        texts = [body.query]
        if body.mode != "semantic":
            reference = body.reference_time or self._now()
            asked = await parsed_query(body.query, reference)
            texts += asked.ranked_texts
        query = QueryVectors()
        if body.mode != "lexical":
            query = await self._embedders.for_query(
                principal, texts, required=body.mode == "semantic"
            )
        if asked is not None:
            asked = asked.embedded(query.by_model)
        reranks = body.rerank and self._reranker is not None
        # One more says that a further page follows.
        wanted = reached.wanted(body.limit) if reached else body.limit + 1
        plan = SearchPlan(
            access=access,
            buckets=buckets,
            vectors={model: rows[0] for model, rows in query.by_model.items()},
            asked=asked,
            degraded=query.degraded,
            user_id=user_id,
            member=member,
            agent_id=agent_id,
            weights=(self._weights.similarity, self._weights.confidence, self._weights.scope),
            limit=max(wanted, RERANK_CANDIDATES) if reranks else wanted,
            threshold=body.threshold,
            rerank=body.rerank,
            mode=body.mode,
            memory_type=body.memory_type,
            tier=body.tier,
            filters=body.filters,
            as_of=body.as_of,
            known_at=body.known_at,
            run_id=body.run_id,
            dense_share=query.dense_share,
            names=self._names(body),
            newest=reached.newest if reached else None,
            explain=body.explain,
        )
        if around and body.as_of is None and body.known_at is None:
            plan = replace(plan, around=True, columns=(*COLUMNS, VALIDITY))
        return plan

    async def _buckets(
        self, principal: Principal, body: SearchRequest, user_id: str | None, agent_id: str | None
    ) -> list[Bucket]:
        """The buckets to search, with the weight of each; none for an unknown run alone.

        Raises:
            SelectorRequiredError: no scope is named.

        """
        if user_id is None and body.run_id is not None:
            user_id = await self._user_of(principal, body.run_id)
        places = (
            ("session", body.session_id),
            ("session", body.run_id),
            ("project", body.project_id),
            ("user", user_id),
            ("agent", agent_id),
        )
        named = set(body.scopes or self._scopes)
        buckets = [
            Bucket(scope, scope_id, self._scopes[scope])
            for scope, scope_id in dict.fromkeys(places)
            if scope_id is not None and scope in named
        ]
        if not buckets and (body.run_id is None or "user" not in named):
            raise SelectorRequiredError("body", _SELECTORS)
        return buckets

    async def _user_of(self, principal: Principal, session_id: str) -> str | None:
        """Whose session it is, whoever asks: which of that user's memories they may see, the
        search itself decides. None when there is no such session.
        """
        rows = await self._database.fetch(principal.tenant_id, _USER_OF_SESSION, session_id)
        return str(rows[0]["user_id"]) if rows else None

    async def _is_member(self, principal: Principal, project_id: str, user_id: str | None) -> bool:
        """Whether more is shown of the project than what is public.

        Raises:
            ProjectNotFoundError: missing, or the user is no member and nothing is public.

        """
        rows = await self._database.fetch(
            principal.tenant_id,
            _MAY_READ_PROJECT,
            project_id,
            user_id,
            principal.access.agent_id,
            principal.access.user_id,
        )
        if not rows:
            raise ProjectNotFoundError(project_id)
        return bool(rows[0]["member"])

    async def _waiting(self, principal: Principal, plan: SearchPlan) -> int:
        """Memories that could not be compared; asked only when there may be some.

        Words of the past may have vectors of a model that nothing else has any more.
        """
        if plan.known_at is not None:
            text, values = known_waiting_statement(plan)
        elif set(principal.embedding_models) <= plan.vectors.keys():
            return 0
        else:
            text, values = waiting_statement(plan)
        rows = await self._database.fetch(principal.tenant_id, text, *values)
        return int(rows[0]["waiting"])


def _fingerprint(principal: Principal, body: SearchRequest) -> str:
    """Hash of caller and request; the time of the search is in the cursor."""
    asked = body.model_dump(mode="json", exclude=_OF_A_PAGE)
    return fingerprint(asked | {"key": [principal.access.user_id, principal.access.agent_id]})


def _reached(principal: Principal, body: SearchRequest) -> MessageSearchPosition | None:
    """Where the request's cursor points, if it has one.

    Raises:
        OtherSearchError: the cursor is of another search.

    """
    return None if body.cursor is None else decode(body.cursor, _fingerprint(principal, body))


def _cursor(
    principal: Principal,
    asked: SearchRequest,
    reached: MessageSearchPosition | None,
    seen: list[str],
    times: tuple[datetime, datetime],
) -> str:
    count = (reached.count if reached else 0) + len(seen)
    position = MessageSearchPosition(count, marks(reached, seen), *times)
    return encode(position, _fingerprint(principal, asked))
