"""Exports and summaries for mem0's clients: what is remembered, with what a profile knows."""

from collections.abc import Mapping
from typing import Any, Final

from app.identity.tenants.access import Principal
from app.identity.users.schemas import UserNotFoundError
from app.integrations.mem0 import answers
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.errors import InvalidMem0RequestError, NoCounterpartError
from app.integrations.mem0.export_schemas import (
    Chosen,
    ExportCreate,
    ExportCreated,
    ExportGet,
    ExportRequest,
    ExportSummary,
    ExportSummaryRequest,
    fields_of,
    filled,
    summary,
)
from app.integrations.mem0.filters import named, translated
from app.integrations.mem0.profile_schemas import content_of
from app.integrations.mem0.repository import ListedMemories
from app.integrations.mem0.service import made, refuse_other_project
from app.memory.memories.conflict_repository import shown_memories
from app.memory.memories.search_schemas import StatsQuery
from app.memory.memories.service import MemoryService
from app.memory.profiles.service import ProfileService
from app.platform.work.unit import Work

MOST_EXPORTED: Final = 10_000
_AT_ONCE: Final = 500

_COUNTED: Final = {"user_id": "user_id", "agent_id": "agent_id", "run_id": "run_id"}
"""What a summary may be narrowed by."""


class Mem0ExportService:
    """Reads all of what a filter chooses at once."""

    def __init__(
        self,
        work: Work,
        memories: MemoryService,
        profiles: ProfileService,
        *,
        most: int = MOST_EXPORTED,
    ) -> None:
        """More than `most` memories are no export for one answer."""
        self._work = work
        self._memories = memories
        self._profiles = profiles
        self._most = most

    async def order(self, principal: Principal, body: ExportCreate) -> ExportCreated:
        """The id under which the export is read when it is fetched; nothing is stored.

        Raises:
            InvalidMem0RequestError: the schema or a filter cannot be understood, or more is
                chosen than one answer holds.
            NoCounterpartError: instructions are given, which only a model could follow.

        """
        refuse_other_project(principal, body)
        if body.export_instructions:
            raise NoCounterpartError(
                "`export_instructions`", "A field is filled from the profile or is null."
            )
        request = _request(body, fields_of(body.schema_))
        profile = await self._profile(principal, request.filters)
        left = [field for field in request.fields if profile.get(field) is None]
        await self._count(principal, request.filters)
        export_id = request.export_id
        message = "Memory export request received. The export will be ready at once."
        if left:
            message += f" Null, as the profile has no such field now: {', '.join(left)}."
        return ExportCreated(message=message, id=export_id)

    async def get(self, principal: Principal, body: ExportGet) -> Shown:
        """The fields of the schema, and the memories as they are now, newest first.

        Raises:
            InvalidMem0RequestError: there is no such export, a filter cannot be understood, or
                more is chosen than one answer holds.

        """
        refuse_other_project(principal, body)
        if body.memory_export_id is None:
            request = _request(body, [])
        else:
            request = ExportRequest.of(body.memory_export_id)
        profile = await self._profile(principal, request.filters)
        return filled(request.fields, profile, await self._all(principal, request.filters))

    async def summary(self, principal: Principal, body: ExportSummaryRequest) -> ExportSummary:
        """How much is remembered, and of one user the profile as text.

        Raises:
            InvalidMem0RequestError: it is narrowed by more than a user, an agent and a run.

        """
        refuse_other_project(principal, body)
        chosen = _request(body, []).filters
        ids = {
            ours: value
            for theirs, ours in _COUNTED.items()
            if (value := named(chosen, theirs)) is not None
        }
        if _parts(translated(chosen)) != _parts(translated(ids)):
            raise InvalidMem0RequestError(
                f"A summary is narrowed by {', '.join(_COUNTED)} alone, each with one value."
            )
        stats = await self._memories.stats(principal, made(StatsQuery, ids))
        known = summary(await self._profile(principal, ids)) if "user_id" in ids else None
        return ExportSummary(
            summary=known,
            total_memories=stats.total,
            memory_types=stats.by_memory_type,
            last_saved=stats.last_saved,
        )

    async def _profile(self, principal: Principal, filters: Mapping[str, Any]) -> dict[str, Any]:
        """What is known of the one user whom `filters` name; nothing of several or none."""
        user_id = named(filters, "user_id")
        if user_id is None:
            return {}
        try:
            return content_of(await self._profiles.of_user(principal, user_id))
        except UserNotFoundError:
            return {}

    async def _count(self, principal: Principal, filters: Mapping[str, Any]) -> int:
        """How many memories are chosen.

        Raises:
            InvalidMem0RequestError: more than one answer holds.

        """
        async with self._work.read(principal) as db:
            _, count = await ListedMemories(db, principal.access).page(
                translated(filters), expired=False, page=1, size=1
            )
        if count > self._most:
            raise InvalidMem0RequestError(
                f"{count} memories are chosen, and an export has at most {self._most}: narrow the "
                "filters, page through them, or take `GET /v1/export`."
            )
        return count

    async def _all(self, principal: Principal, filters: Mapping[str, Any]) -> list[Shown]:
        """Raises InvalidMem0RequestError."""
        count = await self._count(principal, filters)
        found: list[Shown] = []
        async with self._work.read(principal) as db:
            listed = ListedMemories(db, principal.access)
            for page in range(1, -(-count // _AT_ONCE) + 1):
                rows, _ = await listed.page(
                    translated(filters), expired=False, page=page, size=_AT_ONCE
                )
                shown = await shown_memories(db, principal.access, rows)
                found += [answers.memory(memory.model_dump()) for memory in shown]
        return found


def _request(body: Chosen, fields: list[str]) -> ExportRequest:
    """The filters in mem0's grammar, as one.

    Raises:
        InvalidMem0RequestError: a field or an operator is not known here.

    """
    parts: list[dict[str, Any]] = [{name: value} for name, value in body.named]
    parts += [dict(body.filters)] if body.filters else []
    filters: dict[str, Any] = {} if not parts else parts[0] if len(parts) == 1 else {"AND": parts}
    translated(filters)
    return ExportRequest(filters, fields)


def _parts(own: Mapping[str, Any]) -> list[str]:
    """The members of a filter of ours in an order of their own."""
    return sorted(map(repr, own.get("AND", [own])))
