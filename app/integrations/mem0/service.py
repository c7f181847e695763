"""Use cases of mem0's clients, each carried out by the services of our own API."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from app.identity.tenants.access import Principal
from app.integrations.mem0 import answers
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.errors import InvalidMem0RequestError, UnknownMem0ProjectError
from app.integrations.mem0.filters import (
    APP_KEY,
    expiry,
    ids_alone,
    moment,
    named,
    together,
    translated,
)
from app.integrations.mem0.repository import ListedMemories, Place
from app.integrations.mem0.schemas import (
    ENTITY_IDS,
    AddRequest,
    ClientBody,
    Entities,
    ListRequest,
    Narrowing,
    SearchBody,
    own_id,
    shown_id,
)
from app.memory.memories.conflict_repository import shown_memories
from app.memory.memories.errors import GateRejectedError
from app.memory.memories.schemas import AddAccepted, MemoryAdded, MemoryCreate, SaidMessage
from app.memory.memories.search_schemas import SearchRequest as OwnSearch
from app.memory.memories.search_service import SearchService
from app.memory.memories.service import MemoryCreation, MemoryService
from app.platform.http.problems import location_of
from app.platform.work.idempotency import IdempotencyKey, ReplayedAnswer
from app.platform.work.unit import Work

Made = TypeVar("Made", bound=BaseModel)

PLACES: Final = 20
"""Most users, agents and sessions that one search goes through."""
DEFAULT_TOP_K: Final = 10
DEFAULT_PAGE: Final = 100

Page = tuple[list[Shown], int]


class Mem0Service:
    """Adds, finds and lists memories as mem0's clients ask for it."""

    def __init__(
        self, work: Work, creation: MemoryCreation, memories: MemoryService, searches: SearchService
    ) -> None:
        self._work = work
        self._creation = creation
        self._memories = memories
        self._searches = searches

    async def add(
        self, principal: Principal, body: AddRequest, *, key: IdempotencyKey | None = None
    ) -> Shown:
        """Remember messages now. Safe to retry with `key`.

        Raises:
            InvalidMem0RequestError: a field asks for what there is no counterpart of.
            GateRejectedError: every message of an add without `infer` was refused.
            What `MemoryCreation.add` raises.

        """
        request = _create(principal, body)
        try:
            added, _ = await self._creation.add(principal, request, key=key)
        except ReplayedAnswer as kept:
            added = MemoryAdded.model_validate_json(kept.body)
        if body.infer:
            return answers.warned(
                {
                    "results": answers.inferred(added.results),
                    "rejected": answers.rejected(added.results),
                },
                body.unused,
            )
        refused = answers.rejected(added.results)
        if len(refused) == len(added.results):
            raise GateRejectedError([reason for result in refused for reason in result["reasons"]])
        verdicts = [outcome.decision_id for outcome in added.results]
        shown: Shown = {
            "message": "Memories stored as they were given.",
            "status": "SUCCEEDED",
            "event_id": next((shown_id(verdict) for verdict in verdicts if verdict), None),
            "results": answers.stored(added.results),
        }
        return answers.warned(shown | ({"rejected": refused} if refused else {}), body.unused)

    async def order(
        self, principal: Principal, body: AddRequest, *, key: IdempotencyKey | None = None
    ) -> Shown:
        """Remember messages in the background. Safe to retry with `key`.

        Raises:
            InvalidMem0RequestError: a field asks for what there is no counterpart of.
            What `MemoryCreation.order` raises.

        """
        request = _create(principal, body)
        try:
            accepted = await self._creation.order(principal, request, key=key)
        except ReplayedAnswer as kept:
            accepted = AddAccepted.model_validate_json(kept.body)
        shown = {
            "message": "Memory processing has been queued for background execution.",
            "status": "PENDING",
            "event_id": shown_id(accepted.job_id),
        }
        return answers.warned(shown, body.unused)

    async def get(self, principal: Principal, memory_id: str) -> Shown:
        """One memory.

        Raises:
            InvalidMem0RequestError: the id is no UUID.
            MemoryNotFoundError: there is none for this caller.

        """
        found = await self._memories.get(principal, own_id("mem", memory_id))
        return answers.memory(found.model_dump())

    async def search(
        self, principal: Principal, body: SearchBody, *, count: Callable[[int], None]
    ) -> Shown:
        """What is remembered about a query, best first, with a `score` of `threshold` at least.

        A search that names no user goes through every user, agent and session that has what the
        filters choose.

        Args:
            count: called with how many of our searches it is, before them.

        Raises:
            InvalidMem0RequestError: a filter is not known, or the filters choose memories of more
                than `PLACES` users, agents and sessions.
            What `SearchService.search` raises.

        """
        refuse_other_project(principal, body)
        filters = _chosen(body)
        ids = _ids(body)
        limit = body.top_k or body.limit or DEFAULT_TOP_K
        asked = {
            "query": body.query,
            "limit": limit,
            "filters": filters or None,
            "rerank": body.rerank is not False,
            "reference_time": None if body.reference_date is None else moment(body.reference_date),
        }
        found: list[Mapping[str, Any]] = []
        places = await self._places(principal, ids, filters)
        count(max(1, len(places)))
        for place in places:
            request = made(OwnSearch, asked | place)
            found += (await self._searches.search(principal, request))["results"]
        if len(places) > 1 or body.rerank is False:
            found.sort(key=lambda row: -row["score"])
        kept = [row for row in found[:limit] if row["score"] >= (body.threshold or 0)]
        results = [answers.hit(row, body.fields) for row in kept]
        return answers.warned({"results": results}, body.unused)

    async def _places(
        self, principal: Principal, ids: Mapping[str, str], filters: Mapping[str, Any]
    ) -> list[dict[str, str]]:
        """Where to search, as fields of a search of ours."""
        if "user_id" in ids:
            subject = {"user_id": ids["user_id"]}
            return [subject | ({"run_id": ids["run_id"]} if "run_id" in ids else {})]
        async with self._work.read(principal) as db:
            places = await ListedMemories(db, principal.access).places(filters, PLACES + 1)
        if len(places) > PLACES:
            raise InvalidMem0RequestError(
                f"The filters choose memories of more than {PLACES} users, agents and runs: name "
                "one of them."
            )
        return [_place(place) for place in places]

    async def list_memories(
        self, principal: Principal, body: ListRequest, *, page: int, size: int
    ) -> Page:
        """A page of memories, newest first, and how many there are on all pages.

        Raises:
            InvalidMem0RequestError, InvalidFilterError: a filter is not known.

        """
        refuse_other_project(principal, body)
        filters = _chosen(body)
        if body.keywords is not None:
            filters = together(filters, translated({"keywords": body.keywords}))
        for name, operator in (("start_date", "gte"), ("end_date", "lte")):
            if (value := getattr(body, name)) is not None:
                filters = together(filters, translated({"created_at": {operator: value}}))
        async with self._work.read(principal) as db:
            rows, count = await ListedMemories(db, principal.access).page(
                filters, expired=body.show_expired, page=page, size=size
            )
            shown = await shown_memories(db, principal.access, rows)
        return [answers.memory(memory.model_dump(), body.fields) for memory in shown], count


def _place(place: Place) -> dict[str, str]:
    return {f"{place.scope}_id": place.scope_id}


def _ids(body: Entities) -> dict[str, str]:
    """The ids that a request names, beside `filters` or in it.

    Raises:
        InvalidMem0RequestError: the two name different ones.

    """
    inside = {name: named(body.filters, name) for name in ENTITY_IDS}
    return _agreed(
        dict(body.named), {name: value for name, value in inside.items() if value is not None}
    )


def _agreed(beside: Mapping[str, str], inside: Mapping[str, str]) -> dict[str, str]:
    """Raises InvalidMem0RequestError where the two name different ids."""
    for name in beside.keys() & inside.keys():
        if beside[name] != inside[name]:
            raise InvalidMem0RequestError(f"{name} is named twice, and differently.")
    return {**beside, **inside}


def _chosen(body: Narrowing) -> dict[str, Any]:
    """Everything that narrows a list or a search, as our filter."""
    parts = [translated(body.filters), translated(dict(body.named))]
    if body.categories:
        parts.append(translated({"categories": body.categories}))
    if body.metadata:
        parts.append(translated({"metadata": body.metadata}))
    return together(*parts)


def refuse_other_project(principal: Principal, body: ClientBody) -> None:
    """Raises UnknownMem0ProjectError for ids that are not those of the caller's tenant."""
    if {body.org_id, body.project_id} - {None, principal.tenant_id}:
        raise UnknownMem0ProjectError


def _create(principal: Principal, body: AddRequest) -> MemoryCreate:
    """The request of our own API.

    Raises:
        InvalidMem0RequestError: it asks for what there is no counterpart of.
        UnknownMem0ProjectError: it names another project.

    """
    refuse_other_project(principal, body)
    for name in ("immutable", "structured_data_schema"):
        if getattr(body, name):
            raise InvalidMem0RequestError(f"{name} is not supported here: leave it out.")
    ids = _agreed(dict(body.named), ids_alone(body.filters))
    metadata = dict(body.metadata or {})
    if "app_id" in ids:
        metadata[APP_KEY] = ids["app_id"]
    said_at = next(
        (
            moment(given)
            for given in (body.timestamp, body.observation_datetime, body.observation_date)
            if given is not None
        ),
        None,
    )
    values: dict[str, Any] = {
        "messages": [
            {"said_at": said_at, **message.model_dump(exclude_unset=True)}
            for message in _said(body)
        ],
        "user_id": ids.get("user_id"),
        "agent_id": ids.get("agent_id"),
        "session_id": ids.get("run_id"),
        # What only an agent is named for is known to all of its users.
        "scope": "agent" if "agent_id" in ids and "user_id" not in ids else None,
        "metadata": metadata,
        "infer": body.infer,
        **({"prompt": _prompt(body)} if body.infer else {"on_duplicate": "allow"}),
        "expires_at": None if body.expiration_date is None else expiry(body.expiration_date),
    }
    return made(MemoryCreate, values)


def _said(body: AddRequest) -> list[SaidMessage]:
    if isinstance(body.messages, list):
        return body.messages
    said = body.messages
    return [said if isinstance(said, SaidMessage) else SaidMessage(content=said)]


def _prompt(body: AddRequest) -> str | None:
    parts = [body.custom_instructions or ""]
    if body.includes:
        parts.append(f"Extract only what is about: {body.includes}")
    if body.excludes:
        parts.append(f"Leave out what is about: {body.excludes}")
    return "\n".join(part for part in parts if part) or None


def made(kind: type[Made], values: Mapping[str, Any]) -> Made:
    """A request of our own API. Raises InvalidMem0RequestError, naming the fields."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(location_of(('body', *fault['loc']))[1:])}: "
            f"{fault['msg'].removeprefix('Value error, ')}"
            for fault in error.errors(include_input=False, include_url=False)[:10]
        )
        raise InvalidMem0RequestError(faults) from None
