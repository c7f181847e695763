"""What each tool does: a call of an ordinary service, and the rendering of its result."""

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
from app.conversation.messages.service import MessageService
from app.conversation.messages.slice_schemas import MessageSliceQuery
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
    ReadArguments,
    ReplaceArguments,
    RewriteArguments,
    SaveArguments,
    SearchArguments,
)
from app.prompting.tools.errors import CallRefusedError
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
    counts_result,
    digest,
    mark,
    memory_data,
    memory_line,
    message_data,
    message_line,
    message_text_result,
    passage_data,
    passage_line,
    reached,
    saved_result,
)

DEEPEST = 100
"""Hits of a search that can be paged through, as many as a search returns."""


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The caller of a tool and its session; none of it comes from the model.

    Args:
        key_principal: the holder of the key.
        principal: the same, restricted to the session's user, and never an admin.
        project_id: the session's, when its user is a member.
        keep: makes the answer over HTTP from a tool's result.

    """

    key_principal: Principal
    principal: Principal
    session_id: str
    user_id: str
    agent_id: str
    project_id: str | None
    budget: Budget
    key: IdempotencyKey | None
    keep: Callable[[ToolResult], BaseModel]


class ToolKey(IdempotencyKey):
    """The key of a tool call: a repeated call gets the tool's answer, not the service's."""

    def __init__(self, key: IdempotencyKey, keep: Callable[[Any], Awaitable[BaseModel]]) -> None:
        """Use `key`, and store what `keep` makes of the service's answer."""
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
    """The tool's result from a service's answer, rendered once.

    It is rendered in the service's transaction when the call has an idempotency key, else after it.
    """

    def __init__(self, caller: ToolCaller, render: Callable[[Any], Awaitable[ToolResult]]) -> None:
        self._calling = caller
        self._render = render
        self._result: ToolResult | None = None
        self.key = None if caller.key is None else ToolKey(caller.key, self._kept)

    async def result(self, answer: Any) -> ToolResult:
        """The result for the model, rendered at the first call."""
        if self._result is None:
            self._result = await self._render(answer)
        return self._result

    async def _kept(self, answer: Any) -> BaseModel:
        return self._calling.keep(await self.result(answer))


class ResultLine(NamedTuple):
    """An item of a result."""

    item_id: str
    text: str
    data: dict[str, Any]


class ResultHeading(NamedTuple):
    """The heading of a list, and the text for an empty list."""

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
        messages: MessageService,
        passages: PassageSearchService,
        blocks: BlockEditService,
        injections: Injections,
        now: Callable[[], datetime],
    ) -> None:
        self._saving = saving
        self._memories = memories
        self._search = search
        self._message_search = message_search
        self._messages = messages
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
                "message_read": self._message,
                "passage_search": self._read,
                "core_memory_append": self._append,
                "core_memory_replace": self._replace,
                "memory_insert": self._insert,
                "memory_rethink": self._rewrite,
            }
        )

    async def _save(self, caller: ToolCaller, arguments: SaveArguments) -> ToolResult:
        body = MemoryCreate(
            messages=arguments.content,
            user_id=caller.user_id,
            session_id=caller.session_id,
            project_id=caller.project_id if arguments.scope == "project" else None,
            scope=arguments.scope,
            memory_type=arguments.memory_type,
            tier="short" if arguments.scope == "session" else "long",
            source="ai",
            infer=False,
        )

        async def render(added: MemoryAdded) -> ToolResult:
            return saved_result(added.results[0])

        deferred = DeferredAnswer(caller, render)
        added, _ = await self._saving.add(caller.principal, body, key=deferred.key)
        return await deferred.result(added)

    async def _find(self, caller: ToolCaller, arguments: SearchArguments) -> ToolResult:
        asked = arguments.model_dump(exclude={"k", "cursor"})
        search = digest({"tool": "memory_search", "session": caller.session_id} | asked)
        start, at = self._start(arguments.cursor, search)
        body = SearchRequest(
            query=arguments.query,
            user_id=caller.user_id,
            agent_id=caller.agent_id,
            session_id=caller.session_id,
            project_id=caller.project_id,
            scopes=[arguments.scope] if arguments.scope else None,
            memory_type=arguments.memory_type,
            limit=_depth(start, arguments.k),
            reference_time=at,
        )
        answer = await self._search.search(caller.principal, body, around=True)
        lines = [
            ResultLine(hit["memory_id"], memory_line(hit, at), memory_data(hit))
            for hit in answer["results"]
        ]
        result = await _paged(caller, lines, start, at, search, arguments.k, MEMORIES)
        # What the model has seen, here as in a context, is not extracted again when it repeats it.
        shown = [item["memory_id"] for item in result.data["items"]]
        tenant_id = caller.principal.tenant_id
        self._injections.note(tenant_id, caller.session_id, shown, self._now())
        return result

    async def _delete(self, caller: ToolCaller, arguments: DeleteArguments) -> ToolResult:
        """Raises MemoryNotFoundError."""
        memory_id = arguments.memory_id
        memory = await self._memories.get(caller.principal, memory_id)
        if memory.agent_id not in {None, caller.agent_id}:
            # Private to a different agent, and visible in its sessions only.
            raise MemoryNotFoundError(memory_id)
        await self._memories.delete(caller.principal, memory_id, hard=False)
        return ToolResult(f"Deleted {memory_id}.", {"memory_id": memory_id})

    async def _count(self, caller: ToolCaller, _arguments: Nothing) -> ToolResult:
        query = StatsQuery(user_id=caller.user_id)
        return counts_result(await self._memories.stats(caller.principal, query), self._now())

    async def _recall(self, caller: ToolCaller, arguments: ConversationArguments) -> ToolResult:
        asked = arguments.model_dump(exclude={"k", "cursor"})
        search = digest({"tool": "conversation_search", "session": caller.session_id} | asked)
        start, at = self._start(arguments.cursor, search)
        roles = {"roles": [arguments.role]} if arguments.role else {}
        body = MessageSearch(
            query=arguments.query,
            user_id=caller.user_id,
            agent_id=caller.agent_id,
            since=arguments.since,
            until=arguments.until,
            limit=_depth(start, arguments.k),
            reference_time=at,
            **roles,
        )
        answer = await self._message_search.search(caller.principal, body, remembered=True)
        lines = [
            ResultLine(hit["message_id"], message_line(hit), message_data(hit))
            for hit in answer["items"]
        ]
        return await _paged(caller, lines, start, at, search, arguments.k, MESSAGES)

    async def _message(self, caller: ToolCaller, arguments: ReadArguments) -> ToolResult:
        """Raises CallRefusedError, MessageNotFoundError."""
        wanted = arguments.message_id or arguments.number
        if wanted is None or (arguments.message_id and arguments.number):
            raise CallRefusedError("Give either message_id or number: the message to read.")
        found = await self._messages.get(
            caller.principal, caller.session_id, wanted, MessageSliceQuery()
        )
        return await read_text(
            found.total_length, message_text_result, found, arguments.offset, caller.budget
        )

    async def _read(self, caller: ToolCaller, arguments: PassageArguments) -> ToolResult:
        asked = {"tool": "passage_search", "session": caller.session_id, "query": arguments.query}
        search = digest(asked)
        start, at = self._start(arguments.cursor, search)
        body = PassageSearch(
            query=arguments.query,
            user_id=caller.user_id,
            agent_id=caller.agent_id,
            project_id=caller.project_id,
            limit=_depth(start, arguments.k),
        )
        hits = (await self._passages.search(caller.principal, body)).items
        lines = [ResultLine(hit.passage_id, passage_line(hit), passage_data(hit)) for hit in hits]
        return await _paged(caller, lines, start, at, search, arguments.k, PASSAGES)

    def _start(self, cursor: str | None, search: int) -> tuple[SearchPosition | None, datetime]:
        """Where a page begins, and the reference time of the search."""
        start = None if cursor is None else reached(cursor, search)
        return start, self._now() if start is None else start.asked

    async def _append(self, caller: ToolCaller, arguments: AppendArguments) -> ToolResult:
        return await self._edit(caller, arguments.label, BlockAppend(text=arguments.content))

    async def _replace(self, caller: ToolCaller, arguments: ReplaceArguments) -> ToolResult:
        change = BlockReplace(old=arguments.old_content, new=arguments.new_content)
        return await self._edit(caller, arguments.label, change)

    async def _insert(self, caller: ToolCaller, arguments: InsertArguments) -> ToolResult:
        change = BlockInsert(text=arguments.content, line=arguments.line)
        return await self._edit(caller, arguments.label, change)

    async def _rewrite(self, caller: ToolCaller, arguments: RewriteArguments) -> ToolResult:
        return await self._edit(caller, arguments.label, BlockRewrite(value=arguments.content))

    async def _edit(self, caller: ToolCaller, label: str, change: Edit) -> ToolResult:
        async def render(block: BlockRead) -> ToolResult:
            return await read_text(len(block.value), _block_result, block, caller.budget)

        deferred = DeferredAnswer(caller, render)
        # With the key as it is: a key that is restricted to a user may not edit shared blocks.
        block = await self._blocks.edit(
            caller.key_principal,
            caller.session_id,
            label,
            change,
            key=deferred.key,
        )
        return await deferred.result(block)


def _depth(start: SearchPosition | None, k: int) -> int:
    """How many hits to ask for: those seen, those wanted, and one to know whether more follow."""
    return min((start.count if start else 0) + k + 1, DEEPEST)


async def _paged(
    caller: ToolCaller,
    lines: Sequence[ResultLine],
    start: SearchPosition | None,
    at: datetime,
    search: int,
    k: int,
    heading: ResultHeading,
) -> ToolResult:
    """The page of a ranking that follows `start`, as much of it as the budget holds."""
    begin = 0 if start is None else start.start_in([line.item_id for line in lines])
    page = lines[begin : begin + k]
    if not page:
        return ToolResult(heading.nothing if start is None else NO_MORE, {"items": []})
    seen = start.count if start else 0

    def cursor(count: int) -> str | None:
        if begin + count >= len(lines) or seen + count >= DEEPEST:
            return None
        return SearchPosition(seen + count, mark(page[count - 1].item_id), at).encoded(search)

    def compose(shown: Sequence[str]) -> str:
        numbered = [f"{seen + number}. {text}" for number, text in enumerate(shown, 1)]
        return "\n".join(
            [heading.head, *numbered, *_foot(cursor(len(shown)), deepest=seen + len(shown))]
        )

    text, count = await read_text(
        sum(len(line.text) for line in page),
        caller.budget.fill,
        [line.text for line in page],
        compose,
    )
    return ToolResult(text, {"items": [line.data for line in page[:count]]}, cursor(count))


def _foot(cursor: str | None, *, deepest: int) -> list[str]:
    if cursor is not None:
        return [f"There is more: repeat the call, all arguments unchanged, with cursor {cursor}"]
    return [NO_DEEPER] if deepest >= DEEPEST else []


def _block_result(block: BlockRead, budget: Budget) -> ToolResult:
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
