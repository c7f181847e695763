"""mem0's self-hosted server below /mem0-oss, for clients that speak its dialect, with what they
send.

Each route is carried out by the services of the hosted dialect; only the shapes differ.
"""

from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from app.identity.tenants.principal import (
    AdminDep,
    IdempotencyKeyDep,
    ModelCountDep,
    MoreCountDep,
    ReaderDep,
    WriterDep,
)
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.change_service import Mem0ChangeService
from app.integrations.mem0.entity_service import Mem0EntityService
from app.integrations.mem0.errors import NoCounterpartError
from app.integrations.mem0.filters import translated
from app.integrations.mem0.router import chosen_by_query_alone
from app.integrations.mem0.schemas import (
    AddRequest,
    DeleteManyQuery,
    EntitiesQuery,
    Filters,
    ListRequest,
    SearchBody,
    TopK,
    UpdateRequest,
)
from app.integrations.mem0.service import Mem0Service, made
from app.memory.memories.schemas import BATCH, Content, SaidMessage
from app.platform.http.dependencies import provided
from app.platform.values.fields import Metadata, OwnId, Schema, example
from app.platform.version import VERSION


class ServerOwner(Schema):
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    run_id: OwnId | None = None

    @property
    def named(self) -> dict[str, str]:
        """The ids that are given."""
        ids = {"user_id": self.user_id, "agent_id": self.agent_id, "run_id": self.run_id}
        return {name: value for name, value in ids.items() if value is not None}


class ServerAdd(ServerOwner):
    model_config = example(
        messages=[{"role": "user", "content": "I moved to Lisbon."}], user_id="ana"
    )

    messages: Annotated[list[SaidMessage], Field(min_length=1, max_length=BATCH)]
    metadata: Metadata | None = None
    expiration_date: str | None = None
    infer: bool = True
    memory_type: str | None = None
    prompt: Annotated[str, Field(max_length=8000)] | None = None


class ServerSearch(ServerOwner):
    model_config = example(query="Where does she live?", filters={"user_id": "ana"}, top_k=5)

    query: str = Field(max_length=100_000)
    filters: Filters | None = None
    top_k: TopK | None = None
    limit: TopK | None = Field(default=None, description="The same in older clients.")
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    explain: bool = Field(default=False, description="Scores are always explained.")
    show_expired: bool = False


class ServerList(ServerOwner):
    top_k: Annotated[int, Field(ge=1, le=1000)] = 20
    show_expired: bool = False


class ServerUpdate(Schema):
    model_config = example(text="She lives in Porto.")

    text: Content | None = None
    data: Content | None = Field(default=None, description="As `text`, of older clients.")
    metadata: Metadata | None = None
    expiration_date: str | None = None


EntityKind = Literal["user", "agent", "run"]


ServiceDep = Annotated[Mem0Service, provided(Mem0Service)]
ChangeDep = Annotated[Mem0ChangeService, provided(Mem0ChangeService)]
EntityDep = Annotated[Mem0EntityService, provided(Mem0EntityService)]

HIDDEN: Final = {"app_id", "session_id", "categories", "structured_attributes", "synthesized"}
"""Fields of the hosted API that the server does not answer."""
EVERYTHING: Final = {"OR": [{"user_id": "*"}, {"agent_id": "*"}, {"run_id": "*"}]}

# Functions have the names of those of mem0's server: clients are made from their operation ids.
router = APIRouter(tags=["mem0 server"])


def _shown(memory: Shown) -> Shown:
    return {name: value for name, value in memory.items() if name not in HIDDEN}


@router.post("/memories")
async def add_memory(
    body: ServerAdd,
    principal: WriterDep,
    service: ServiceDep,
    count_model: ModelCountDep,
    key: IdempotencyKeyDep,
) -> Shown:
    """Remember messages now; with `infer` the answer waits for the model."""
    request = _add_request(body)
    if body.infer:
        count_model()
    return await service.add(principal, request, key=key)


def _add_request(body: ServerAdd) -> AddRequest:
    """Raises NoCounterpartError."""
    if body.memory_type is not None:
        raise NoCounterpartError("memory_type", "Leave it out: procedures are read by themselves.")
    given = body.model_dump(exclude_unset=True, exclude={"prompt", "memory_type"})
    return made(AddRequest, given | {"custom_instructions": body.prompt})


@router.get("/memories")
async def get_all_memories(
    query: Annotated[ServerList, Query()], principal: ReaderDep, service: ServiceDep
) -> Shown:
    """Memories, newest first; without ids all that the key may see."""
    request = made(ListRequest, query.named | {"show_expired": query.show_expired})
    items, _ = await service.list_memories(principal, request, page=1, size=query.top_k)
    return {"results": [_shown(item) for item in items]}


@router.get("/memories/{memory_id}")
async def get_memory(memory_id: str, principal: ReaderDep, service: ServiceDep) -> Shown:
    """One memory."""
    return _shown(await service.get(principal, memory_id))


@router.put("/memories/{memory_id}")
async def update_memory(
    memory_id: str, body: ServerUpdate, principal: WriterDep, service: ChangeDep
) -> Shown:
    """Change a memory's text, metadata or last day."""
    given: dict[str, Any] = body.model_dump(exclude_unset=True)
    text = given.pop("data", None)
    change = made(UpdateRequest, ({} if text is None else {"text": text}) | given)
    await service.update(principal, memory_id, change)
    return {"message": "Memory updated successfully!"}


@router.delete("/memories/{memory_id}")
async def delete_memory(memory_id: str, principal: WriterDep, service: ChangeDep) -> Shown:
    """Delete a memory."""
    await service.delete(principal, memory_id)
    return {"message": "Memory deleted successfully"}


@router.get("/memories/{memory_id}/history")
async def memory_history(memory_id: str, principal: ReaderDep, service: ChangeDep) -> list[Shown]:
    """What happened to a memory, oldest first."""
    entries = await service.history(principal, memory_id)
    return [
        _shown(entry) | {"is_deleted": entry["event"] == "DELETE", "actor_id": None}
        for entry in entries
    ]


@router.delete("/memories", dependencies=[Depends(chosen_by_query_alone)])
async def delete_all_memories(
    query: Annotated[ServerOwner, Query()], principal: WriterDep, service: ChangeDep
) -> Shown:
    """Delete all memories of a user, an agent or a run; one of them must be named."""
    await service.delete_all(principal, DeleteManyQuery(**query.named))
    return {"message": "All relevant memories deleted"}


@router.post("/reset")
async def reset(principal: AdminDep, service: ChangeDep) -> Shown:
    """Delete all memories that the key may see."""
    await service.delete_chosen(principal, translated(EVERYTHING))
    return {"message": "All memories reset"}


@router.post("/search")
async def search_memories(
    body: ServerSearch, principal: ReaderDep, service: ServiceDep, count_more: MoreCountDep
) -> Shown:
    """Find memories by meaning, best first."""
    request = made(SearchBody, body.model_dump(exclude_unset=True, exclude={"explain"}))
    found = await service.search(principal, request, count=partial(count_more, "read"))
    return found | {"results": [_shown(hit) for hit in found["results"]]}


@router.get("/entities")
async def list_entities(principal: ReaderDep, service: EntityDep) -> list[Shown]:
    """Users, agents and runs that have memories; the first 1,000."""
    items, _ = await service.entities(principal, EntitiesQuery(), ("run", "agent", "user"))
    return items


@router.delete("/entities/{entity_type}/{entity_id:path}")
async def delete_entity(
    entity_type: EntityKind, entity_id: str, principal: AdminDep, service: EntityDep
) -> Shown:
    """Delete the memories of a run or an agent, or everything of a user."""
    return await service.delete(principal, entity_type, entity_id)


@router.get("/configure")
async def get_configuration(_principal: ReaderDep) -> Shown:
    """The version of the answers, and the release that gives them."""
    return {"version": "v1.1", "server": f"KeMem {VERSION}"}


@router.post("/configure")
@router.get("/configure/providers", operation_id="list_providers")
@router.post("/generate-instructions", operation_id="generate_instructions")
async def configure(_principal: ReaderDep) -> None:
    """Refused: models and stores are settings of the service.

    Raises:
        NoCounterpartError: always.

    """
    raise NoCounterpartError(
        "Configuration", "Models are settings of the service: see docs/configuration.md."
    )


@router.get("/auth/setup-status", operation_id="get_setup_status")
@router.post("/auth/register", operation_id="register")
@router.post("/auth/login", operation_id="login")
@router.post("/auth/refresh", operation_id="refresh")
@router.get("/auth/me", operation_id="get_account")
@router.get("/api-keys", operation_id="list_api_keys")
@router.post("/api-keys", operation_id="create_api_key")
@router.get("/requests", operation_id="list_requests")
async def manage(_principal: ReaderDep) -> None:
    """Refused: keys are made with `kemem keys` or under `/v1/keys`, and nobody logs in here.

    Raises:
        NoCounterpartError: always.

    """
    raise NoCounterpartError(
        "Accounts, keys and the log of requests",
        "Make keys with `kemem keys`, the dashboard or POST /v1/keys.",
    )
