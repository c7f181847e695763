"""What each tool does: a call of an ordinary service, and the rendering of its result."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from app.conversation.messages.search_schemas import MessageSearch, MessageSliceQuery
from app.conversation.messages.search_service import MessageSearchService
from app.conversation.messages.service import MessageService
from app.errors import VersionConflictError
from app.language.text.offload import read_text
from app.memory.memories.edit_service import EditService
from app.memory.memories.errors import MemoryNotFoundError
from app.memory.memories.save_service import SaveService
from app.memory.memories.schemas import MemoryAdded, MemoryCreate, MemoryPatch, MemoryRead
from app.memory.memories.search_schemas import MemoriesDeleted, SearchRequest, StatsQuery
from app.memory.memories.search_service import SearchService
from app.memory.memories.service import MemoryService
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
from app.prompting.documents.archive_service import ArchiveService
from app.prompting.documents.passage_service import PassageSearchService
from app.prompting.documents.schemas import PassageCreate, PassagesAdded, PassageSearch
from app.prompting.tools.arguments import (
    AppendArguments,
    ConversationArguments,
    DeleteArguments,
    InsertArguments,
    Nothing,
    PassageArguments,
    PassageInsertArguments,
    ReadArguments,
    ReplaceArguments,
    RewriteArguments,
    SaveArguments,
    SearchArguments,
    UpdateArguments,
)
from app.prompting.tools.caller import DeferredAnswer, ToolCaller
from app.prompting.tools.error_texts import SWITCHED_OFF, CallRefusedError
from app.prompting.tools.pages import MEMORIES, MESSAGES, PASSAGES, ResultLine, depth, paged
from app.prompting.tools.tool_results import (
    Budget,
    SearchPosition,
    ToolResult,
    counts_result,
    digest,
    inserted_result,
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

Handler = Callable[[ToolCaller, Any], Awaitable[ToolResult]]


class ToolHandlers:
    def __init__(
        self,
        saving: SaveService,
        memories: MemoryService,
        edits: EditService,
        search: SearchService,
        message_search: MessageSearchService,
        messages: MessageService,
        passages: PassageSearchService,
        archive: ArchiveService,
        blocks: BlockEditService,
        injections: Injections,
        now: Callable[[], datetime],
    ) -> None:
        self._saving = saving
        self._memories = memories
        self._edits = edits
        self._search = search
        self._message_search = message_search
        self._messages = messages
        self._passages = passages
        self._archive = archive
        self._blocks = blocks
        self._injections = injections
        self._now = now
        self.by_name: Mapping[str, Handler] = MappingProxyType(
            {
                "memory_save": self._save,
                "memory_search": self._find,
                "memory_update": self._update,
                "memory_delete": self._delete,
                "memory_stats": self._count,
                "conversation_search": self._recall,
                "message_read": self._message,
                "passage_search": self._read,
                "passage_insert": self._put_aside,
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
            limit=depth(start, arguments.k),
            reference_time=at,
        )
        answer = await self._search.search(caller.principal, body, around=True)
        lines = [
            ResultLine(hit["memory_id"], memory_line(hit, at), memory_data(hit))
            for hit in answer["results"]
        ]
        result = await paged(caller, lines, start, at, search, arguments.k, MEMORIES)
        if caller.session_id is not None:
            # What the model has seen, here as in a context, is not extracted again when it
            # repeats it.
            shown = [item["memory_id"] for item in result.data["items"]]
            tenant_id = caller.principal.tenant_id
            self._injections.note(tenant_id, caller.session_id, shown, self._now())
        return result

    async def _update(self, caller: ToolCaller, arguments: UpdateArguments) -> ToolResult:
        """Raises MemoryNotFoundError, CallRefusedError."""
        if not caller.remembers:
            raise CallRefusedError(SWITCHED_OFF)

        async def render(changed: MemoryRead) -> ToolResult:
            return ToolResult(
                f"Updated {memory_id}, version {changed.version}.",
                {"memory_id": memory_id, "version": changed.version, "content": changed.content},
            )

        memory_id = arguments.memory_id
        deferred = DeferredAnswer(caller, render)
        await self._refuse_other_agents(caller, memory_id)
        patch = MemoryPatch(content=arguments.content)
        try:
            changed = await self._edits.patch(
                caller.principal,
                memory_id,
                patch,
                expected=arguments.version,
                key=deferred.key,
            )
        except VersionConflictError as error:
            raise CallRefusedError(
                f"Nothing was written: {memory_id} was changed meanwhile and has the version "
                f"{error.members['current_version']}. Search for it again to see what it says now."
            ) from error
        return await deferred.result(changed)

    async def _delete(self, caller: ToolCaller, arguments: DeleteArguments) -> ToolResult:
        """Raises MemoryNotFoundError."""

        async def render(_answer: MemoriesDeleted) -> ToolResult:
            return ToolResult(f"Deleted {memory_id}.", {"memory_id": memory_id})

        memory_id = arguments.memory_id
        deferred = DeferredAnswer(caller, render)
        await self._refuse_other_agents(caller, memory_id)
        deleted = await self._memories.delete(
            caller.principal, memory_id, hard=False, key=deferred.key
        )
        return await deferred.result(deleted)

    async def _refuse_other_agents(self, caller: ToolCaller, memory_id: str) -> None:
        """Raises MemoryNotFoundError."""
        memory = await self._memories.get(caller.principal, memory_id)
        if caller.agent_id is not None and memory.agent_id not in {None, caller.agent_id}:
            # Private to a different agent, and visible in its sessions only.
            raise MemoryNotFoundError(memory_id)

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
            limit=depth(start, arguments.k),
            reference_time=at,
            **roles,
        )
        answer = await self._message_search.search(caller.principal, body, remembered=True)
        lines = [
            ResultLine(hit["message_id"], message_line(hit), message_data(hit))
            for hit in answer["items"]
        ]
        return await paged(caller, lines, start, at, search, arguments.k, MESSAGES)

    async def _message(self, caller: ToolCaller, arguments: ReadArguments) -> ToolResult:
        """Raises CallRefusedError, MessageNotFoundError."""
        wanted = arguments.message_id or arguments.number
        if wanted is None or (arguments.message_id and arguments.number):
            raise CallRefusedError("Give either message_id or number: the message to read.")
        if isinstance(wanted, str):
            found = await self._message_search.get_for_model(
                caller.principal, caller.session_id, wanted
            )
        else:
            found = await self._messages.get(
                caller.principal, caller.in_session, wanted, MessageSliceQuery()
            )
        return await read_text(
            found.total_length,
            message_text_result,
            found,
            caller.session_id or found.session_id,
            arguments.offset,
            caller.budget,
        )

    async def _read(self, caller: ToolCaller, arguments: PassageArguments) -> ToolResult:
        asked = arguments.model_dump(exclude={"k", "cursor"})
        search = digest({"tool": "passage_search", "session": caller.session_id} | asked)
        start, at = self._start(arguments.cursor, search)
        body = PassageSearch(
            query=arguments.query,
            user_id=caller.user_id,
            agent_id=caller.agent_id,
            project_id=caller.project_id,
            tags=arguments.tags or [],
            created_from=arguments.since,
            # What begins at the end is no part of it, and the service takes the end as part.
            created_to=arguments.until and arguments.until - timedelta(microseconds=1),
            limit=depth(start, arguments.k),
        )
        hits = (await self._passages.search(caller.principal, body)).items
        lines = [ResultLine(hit.passage_id, passage_line(hit), passage_data(hit)) for hit in hits]
        return await paged(caller, lines, start, at, search, arguments.k, PASSAGES)

    async def _put_aside(self, caller: ToolCaller, arguments: PassageInsertArguments) -> ToolResult:
        """Raises CallRefusedError, and what the archive raises."""
        if not caller.remembers:
            raise CallRefusedError(SWITCHED_OFF)

        async def render(added: PassagesAdded) -> ToolResult:
            return inserted_result(added)

        deferred = DeferredAnswer(caller, render)
        body = PassageCreate(
            content=arguments.content, tags=arguments.tags, create_time=arguments.date
        )
        added = await self._archive.add(caller.principal, caller.user_id, body, key=deferred.key)
        return await deferred.result(added)

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
            caller.in_session,
            label,
            change,
            key=deferred.key,
        )
        return await deferred.result(block)


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
