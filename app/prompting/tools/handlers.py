"""What each tool does: one call of an ordinary service, and its result in words."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession
from typing_extensions import override

from app.conversation.messages.search_schemas import MessageSearch
from app.conversation.messages.search_service import MessageSearchService
from app.identity.tenants.access import Principal
from app.language.text.offload import read_text
from app.memory.memories.errors import MemoryNotFoundError
from app.memory.memories.save_service import SaveService
from app.memory.memories.schemas import MemoryAdded, MemoryCreate
from app.memory.memories.search_schemas import SearchRequest, StatsQuery
from app.memory.memories.search_service import SearchService
from app.memory.memories.service import MemoryService
from app.platform.work.idempotency import IdempotencyKey
from app.prompting.blocks.block_text import ShownBlock, render_block
from app.prompting.blocks.edit_service import BlockEditService
from app.prompting.blocks.schemas import (
    BlockAppend,
    BlockInsert,
    BlockRead,
    BlockReplace,
    BlockRewrite,
    Edit,
)
from app.prompting.context.injections import Injections
from app.prompting.documents.passage_service import PassageSearchService
from app.prompting.documents.schemas import PassageSearch
from app.prompting.tools.arguments import (
    AppendArguments,
    ConversationArguments,
    DeleteArguments,
    InsertArguments,
    Nothing,
    PassageArguments,
    ReplaceArguments,
    RewriteArguments,
    SaveArguments,
    SearchArguments,
)
from app.prompting.tools.tool_results import (
    FOUND_MEMORIES,
    FOUND_MESSAGES,
    FOUND_PASSAGES,
    NO_DEEPER,
    NO_MEMORIES,
    NO_MESSAGES,
    NO_MORE,
    NO_PASSAGES,
    Budget,
    SearchPosition,
    ToolResult,
    digest,
    mark,
    memory_data,
    memory_line,
    message_data,
    message_line,
    passage_data,
    passage_line,
    reached,
    told_counts,
    told_saved,
)

DEEPEST = 100
"""Hits of a search that can be paged through, as many as one search gives."""


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """Who calls a tool, and where: all of it from the key and the session.

    Args:
        caller: whoever holds the key.
        principal: the same, narrowed to the session's user, and never an admin.
        project_id: the session's, when its user is a member.
        keep: what makes the answer over HTTP of what a tool told.

    """

    caller: Principal
    principal: Principal
    session_id: str
    user_id: str
    agent_id: str
    project_id: str | None
    budget: Budget
    key: IdempotencyKey | None
    keep: Callable[[ToolResult], BaseModel]


class ToolKey(IdempotencyKey):
    """The key of a tool call: what a repetition is told is the tool's answer, not the service's."""

    def __init__(self, key: IdempotencyKey, keep: Callable[[Any], Awaitable[BaseModel]]) -> None:
        """Stand for `key`, and keep what `keep` makes of the service's answer."""
        self._given = key
        self._make = keep

    @override
    async def claim(self, db: AsyncSession) -> None:
        await self._given.claim(db)

    @override
    async def keep(
        self, db: AsyncSession, answer: BaseModel, *, status: int, user_id: str | None
    ) -> None:
        await self._given.keep(db, await self._make(answer), status=200, user_id=user_id)


class DeferredAnswer:
    """What the model is told of a service's answer; worked out once.

    That is in the service's transaction when the call has an idempotency key, else after it.
    """

    def __init__(self, calling: ToolCaller, tell: Callable[[Any], Awaitable[ToolResult]]) -> None:
        self._calling = calling
        self._tell = tell
        self._told: ToolResult | None = None
        self.key = None if calling.key is None else ToolKey(calling.key, self._kept)

    async def told(self, answer: Any) -> ToolResult:
        """What the model is told of the service's answer."""
        if self._told is None:
            self._told = await self._tell(answer)
        return self._told

    async def _kept(self, answer: Any) -> BaseModel:
        return self._calling.keep(await self.told(answer))


class ResultLine(NamedTuple):
    """One item of a result."""

    item_id: str
    text: str
    data: dict[str, Any]


class ResultHeading(NamedTuple):
    """How a list of one kind begins, and what is said where there is nothing."""

    head: str
    nothing: str


MEMORIES: Final = ResultHeading(FOUND_MEMORIES, NO_MEMORIES)
MESSAGES: Final = ResultHeading(FOUND_MESSAGES, NO_MESSAGES)
PASSAGES: Final = ResultHeading(FOUND_PASSAGES, NO_PASSAGES)

Handler = Callable[[ToolCaller, Any], Awaitable[ToolResult]]


class ToolHandlers:
    def __init__(
        self,
        saving: SaveService,
        memories: MemoryService,
        search: SearchService,
        message_search: MessageSearchService,
        passages: PassageSearchService,
        blocks: BlockEditService,
        injections: Injections,
        now: Callable[[], datetime],
    ) -> None:
        self._saving = saving
        self._memories = memories
        self._search = search
        self._message_search = message_search
        self._passages = passages
        self._blocks = blocks
        self._injections = injections
        self._now = now
        self.by_name: Mapping[str, Handler] = MappingProxyType(
            {
                "memory_save": self._save,
                "memory_search": self._find,
                "memory_delete": self._delete,
                "memory_stats": self._count,
                "conversation_search": self._recall,
                "passage_search": self._read,
                "core_memory_append": self._append,
                "core_memory_replace": self._replace,
                "memory_insert": self._insert,
                "memory_rethink": self._rewrite,
            }
        )

    async def _save(self, calling: ToolCaller, arguments: SaveArguments) -> ToolResult:
        body = MemoryCreate(
            messages=arguments.content,
            user_id=calling.user_id,
            session_id=calling.session_id,
            project_id=calling.project_id if arguments.scope == "project" else None,
            scope=arguments.scope,
            memory_type=arguments.memory_type,
            tier="short" if arguments.scope == "session" else "long",
            source="ai",
            infer=False,
        )

        async def tell(added: MemoryAdded) -> ToolResult:
            return told_saved(added.results[0])

        answering = DeferredAnswer(calling, tell)
        added, _ = await self._saving.add(calling.principal, body, key=answering.key)
        return await answering.told(added)

    async def _find(self, calling: ToolCaller, arguments: SearchArguments) -> ToolResult:
        asked = arguments.model_dump(exclude={"k", "cursor"})
        search = digest({"tool": "memory_search", "session": calling.session_id} | asked)
        start, at = self._start(arguments.cursor, search)
        body = SearchRequest(
            query=arguments.query,
            user_id=calling.user_id,
            agent_id=calling.agent_id,
            session_id=calling.session_id,
            project_id=calling.project_id,
            scopes=[arguments.scope] if arguments.scope else None,
            memory_type=arguments.memory_type,
            limit=_depth(start, arguments.k),
            reference_time=at,
        )
        answer = await self._search.search(calling.principal, body)
        lines = [
            ResultLine(hit["memory_id"], memory_line(hit, at), memory_data(hit))
            for hit in answer["results"]
        ]
        told = await _paged(calling, lines, start, at, search, arguments.k, MEMORIES)
        # What the model has seen and says is no news, wherever it has seen it.
        shown = [one["memory_id"] for one in told.data["items"]]
        tenant_id = calling.principal.tenant_id
        self._injections.note(tenant_id, calling.session_id, shown, self._now())
        return told

    async def _delete(self, calling: ToolCaller, arguments: DeleteArguments) -> ToolResult:
        memory_id = arguments.memory_id
        memory = await self._memories.get(calling.principal, memory_id)
        if memory.agent_id not in {None, calling.agent_id}:
            # Private to another agent, whose sessions alone it is seen in.
            raise MemoryNotFoundError(memory_id)
        await self._memories.delete(calling.principal, memory_id, hard=False)
        return ToolResult(f"Deleted {memory_id}.", {"memory_id": memory_id})

    async def _count(self, calling: ToolCaller, _arguments: Nothing) -> ToolResult:
        query = StatsQuery(user_id=calling.user_id)
        return told_counts(await self._memories.stats(calling.principal, query), self._now())

    async def _recall(self, calling: ToolCaller, arguments: ConversationArguments) -> ToolResult:
        asked = arguments.model_dump(exclude={"k", "cursor"})
        search = digest({"tool": "conversation_search", "session": calling.session_id} | asked)
        start, at = self._start(arguments.cursor, search)
        roles = {"roles": [arguments.role]} if arguments.role else {}
        body = MessageSearch(
            query=arguments.query,
            user_id=calling.user_id,
            agent_id=calling.agent_id,
            since=arguments.since,
            until=arguments.until,
            limit=_depth(start, arguments.k),
            reference_time=at,
            **roles,
        )
        answer = await self._message_search.search(calling.principal, body)
        lines = [
            ResultLine(hit["message_id"], message_line(hit), message_data(hit))
            for hit in answer["items"]
        ]
        return await _paged(calling, lines, start, at, search, arguments.k, MESSAGES)

    async def _read(self, calling: ToolCaller, arguments: PassageArguments) -> ToolResult:
        asked = {"tool": "passage_search", "session": calling.session_id, "query": arguments.query}
        search = digest(asked)
        start, at = self._start(arguments.cursor, search)
        body = PassageSearch(
            query=arguments.query,
            user_id=calling.user_id,
            agent_id=calling.agent_id,
            project_id=calling.project_id,
            limit=_depth(start, arguments.k),
        )
        hits = (await self._passages.search(calling.principal, body)).items
        lines = [ResultLine(hit.passage_id, passage_line(hit), passage_data(hit)) for hit in hits]
        return await _paged(calling, lines, start, at, search, arguments.k, PASSAGES)

    def _start(self, cursor: str | None, search: int) -> tuple[SearchPosition | None, datetime]:
        """Where a page begins, and the moment as of which the search is asked."""
        start = None if cursor is None else reached(cursor, search)
        return start, self._now() if start is None else start.asked

    async def _append(self, calling: ToolCaller, arguments: AppendArguments) -> ToolResult:
        return await self._edit(calling, arguments.label, BlockAppend(text=arguments.content))

    async def _replace(self, calling: ToolCaller, arguments: ReplaceArguments) -> ToolResult:
        change = BlockReplace(old=arguments.old_content, new=arguments.new_content)
        return await self._edit(calling, arguments.label, change)

    async def _insert(self, calling: ToolCaller, arguments: InsertArguments) -> ToolResult:
        change = BlockInsert(text=arguments.content, line=arguments.line)
        return await self._edit(calling, arguments.label, change)

    async def _rewrite(self, calling: ToolCaller, arguments: RewriteArguments) -> ToolResult:
        return await self._edit(calling, arguments.label, BlockRewrite(value=arguments.content))

    async def _edit(self, calling: ToolCaller, label: str, change: Edit) -> ToolResult:
        async def tell(block: BlockRead) -> ToolResult:
            return await read_text(len(block.value), _told_block, block, calling.budget)

        answering = DeferredAnswer(calling, tell)
        # By the key as it is: a block that all users share is open to no user's key.
        block = await self._blocks.edit(
            calling.caller,
            calling.session_id,
            label,
            change,
            key=answering.key,
        )
        return await answering.told(block)


def _depth(start: SearchPosition | None, k: int) -> int:
    """How many hits to ask for: those seen, those wanted, and one that says whether more follow."""
    return min((start.count if start else 0) + k + 1, DEEPEST)


async def _paged(
    calling: ToolCaller,
    lines: Sequence[ResultLine],
    start: SearchPosition | None,
    at: datetime,
    search: int,
    k: int,
    words: ResultHeading,
) -> ToolResult:
    """The page of a ranking that follows `start`, as much of it as the budget holds."""
    begin = 0 if start is None else start.place_in([one.item_id for one in lines])
    page = lines[begin : begin + k]
    if not page:
        return ToolResult(words.nothing if start is None else NO_MORE, {"items": []})
    seen = start.count if start else 0

    def cursor(count: int) -> str | None:
        if begin + count >= len(lines) or seen + count >= DEEPEST:
            return None
        return SearchPosition(seen + count, mark(page[count - 1].item_id), at).encoded(search)

    def compose(shown: Sequence[str]) -> str:
        numbered = [f"{seen + place}. {text}" for place, text in enumerate(shown, 1)]
        return "\n".join(
            [words.head, *numbered, *_foot(cursor(len(shown)), deepest=seen + len(shown))]
        )

    text, count = await read_text(
        sum(len(one.text) for one in page),
        calling.budget.fill,
        [one.text for one in page],
        compose,
    )
    return ToolResult(text, {"items": [one.data for one in page[:count]]}, cursor(count))


def _foot(cursor: str | None, *, deepest: int) -> list[str]:
    if cursor is not None:
        return [f"There is more: repeat the call, all arguments unchanged, with cursor {cursor}"]
    return [NO_DEEPER] if deepest >= DEEPEST else []


def _told_block(block: BlockRead, budget: Budget) -> ToolResult:
    shown = ShownBlock(
        block_id=block.block_id,
        label=block.label,
        value=block.value,
        value_limit=block.limit,
        description=block.description,
        read_only=block.read_only,
        version=block.version,
        user_id=block.user_id,
        per_user=block.per_user,
    )
    data = {
        "block_id": block.block_id,
        "template_id": block.template_id,
        "label": block.label,
        "chars_current": shown.chars_current,
        "chars_limit": block.limit,
        "version": block.version,
    }
    return ToolResult(budget.cut(f"Done. The block says now:\n{render_block(shown)}"), data)
