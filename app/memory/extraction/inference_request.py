"""A request to infer memories from its messages: the order to do it later, and the run that does
it. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from app.conversation.messages.capture import (
    CLIENT_TIME,
    READ_LENGTH,
    Said,
    client_time_fault,
    could_be_said,
    readable,
    said_at,
    signals_of,
)
from app.conversation.messages.schemas import RequestWarning
from app.conversation.sessions.jobs import ATTEMPTS, reading_lane
from app.identity.tenants.access import Access, Principal
from app.language.llm.extractor import ExtractionRequest
from app.memory.extraction.drafts import Draft
from app.memory.extraction.evidence import EvidenceContext, WritableScopes
from app.memory.extraction.run_policy import RunLimits, instructions
from app.memory.extraction.run_state import RunRequest
from app.memory.extraction.session_reader import turn_of
from app.memory.graph.statements import draws_graph
from app.memory.memories.errors import ImpossibleTimeError, NotInferredError
from app.memory.memories.gate import GateReason
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.schemas import MemoryCreate, SaidMessage
from app.platform.database.base import new_id
from app.platform.jobs.orders import ClaimedJob, Order

INFER = "infer"
"""The kind of the job."""

BASE = ("memory_type", "tier", "visibility", "external_id", "expires_at")
"""Fields of a request that every memory drawn from it gets, when they are given."""

OF_ONE_STATEMENT = (
    "attribute", "confidence", "source", "source_id", "source_error", "evidence", "valid_to",
    "on_duplicate",
)  # fmt: skip
"""Fields that say something of one statement as it stands: reading decides about them."""


@dataclass(frozen=True, slots=True)
class InferenceRules:
    """What the deployment says about reading requests."""

    auto_create: bool
    tags: Sequence[str]
    signal_window: int
    limits: RunLimits


def infer_order(
    principal: Principal, body: MemoryCreate, owner: MemoryOwner, now: datetime
) -> Order:
    """The order for messages of a request; each is a job of its own.

    It bears the ids of everybody whose words it holds until then, so that an erasure finds it.
    """
    access = principal.access
    read = body.infer and bool(body.batch)
    return Order(
        kind=INFER,
        key=new_id("inf"),
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        session_id=owner.session_id,
        creator=principal.key_id,
        max_attempts=ATTEMPTS,
        lane=reading_lane(owner.user_id) if read else None,
        lane_order=said_at(said_messages(body, now)[0]) if read else None,
        payload={
            "body": body.model_dump(mode="json", exclude_unset=True),
            "scopes": sorted(principal.scopes),
            "agent_id": access.agent_id,
            "user_id": access.user_id,
            "own_prefix": access.own_prefix,
        },
    )


def inference_run(
    principal: Principal,
    body: MemoryCreate,
    scopes: WritableScopes,
    config: Mapping[str, Any],
    *,
    rules: InferenceRules,
    said_at: datetime,
    job: ClaimedJob | None,
) -> RunRequest:
    """The run that reads the messages of a request, which no evidence can name later.

    Args:
        config: settings of the agent.
        said_at: when the messages were said that do not say so.

    """
    found = readable(said_messages(body, said_at), rules.tags)
    turns = [turn_of(turn) for turn in found.turns]
    given = body.model_dump(include=set(BASE) & body.model_fields_set)
    return RunRequest(
        principal=principal,
        context=EvidenceContext(turns, scopes, list(found.said_back), stored=False),
        reading=ExtractionRequest(
            turns,
            signals_of(found.turns, rules.signal_window),
            instructions(body.prompt, config, principal.config),
            scopes.names,
            handed_over=len(turns) == 1,
        ),
        trigger="infer",
        agent_id=scopes.agent_id,
        job=job,
        cut=len(found.cut),
        base=given | {"metadata_": dict(body.metadata)},
        graph=draws_graph(config, principal.config) and body.visibility != "owner_only",
    )


def refuse_unusable(body: MemoryCreate, now: datetime) -> None:
    """Let no field be passed over in silence.

    Raises:
        NotInferredError: a field is given that only `infer` false has a use for.
        ImpossibleTimeError: a message cannot have been said then.

    """
    given = [name for name in OF_ONE_STATEMENT if body.infer and name in body.model_fields_set]
    if given:
        raise NotInferredError(given)
    for place, message in enumerate(body.given_messages):
        if message.said_at is not None and not could_be_said(message.said_at, now):
            listed = [place] if isinstance(body.messages, list) else []
            raise ImpossibleTimeError("messages", *listed, "said_at")
    if body.infer and body.valid_from is not None and not could_be_said(body.valid_from, now):
        raise ImpossibleTimeError("valid_from")


def warnings_of(body: MemoryCreate, now: datetime, tags: Sequence[str]) -> list[RequestWarning]:
    """A warning for each client time that would say when something was said, and cannot, and for
    each message that is longer than what is read of it.
    """
    if not body.infer:
        return body.part_warnings
    said = said_messages(body, now)
    numbers = {message.message_id: place for place, message in enumerate(said)}
    cut = [numbers[message_id] for message_id in readable(said, tags).cut]
    return [
        *_time_warnings(body, now),
        *body.part_warnings,
        *(_cut_warning(body, place) for place in cut),
    ]


def _cut_warning(body: MemoryCreate, place: int) -> RequestWarning:
    return RequestWarning(
        code="message_not_read_whole",
        location=["body", "messages", *([str(place)] if isinstance(body.messages, list) else [])],
        detail=f"It is read up to {READ_LENGTH['user']} characters.",
    )


def _time_warnings(body: MemoryCreate, now: datetime) -> list[RequestWarning]:
    batch = body.batch
    own = [
        (place, message.metadata)
        for place, message in enumerate(batch)
        if message.said_at is None and CLIENT_TIME in message.metadata
    ]
    given: list[tuple[list[str], Mapping[str, Any]]] = [
        (["messages", *([str(place)] if isinstance(body.messages, list) else [])], metadata)
        for place, metadata in own
    ]
    silent = sum(message.said_at is None for message in batch) > len(own)
    if silent and body.valid_from is None:
        given.append(([], body.metadata))
    return [
        RequestWarning(
            code="client_time_ignored",
            location=["body", *location, "metadata", CLIENT_TIME],
            detail=fault,
        )
        for location, metadata in given
        if (fault := client_time_fault(metadata, now)) is not None
    ]


def said_messages(body: MemoryCreate, at: datetime) -> list[Said]:
    """The messages of a request as capture reads them, named by their number.

    When one was said it says itself, or the request, or else it is `at`.
    """
    whole = body.valid_from.isoformat() if body.valid_from else body.metadata.get(CLIENT_TIME)

    def metadata(message: SaidMessage) -> dict[str, Any]:
        own = {**({} if whole is None else {CLIENT_TIME: whole}), **message.metadata}
        said = message.said_at
        return own if said is None else own | {CLIENT_TIME: said.isoformat()}

    return [
        Said(
            message_id=f"m{number}",
            role=message.role,
            content=message.content,
            content_parts=None,
            tool_calls=None,
            metadata=metadata(message),
            name=message.name,
            sequence_no=number,
            create_time=at,
        )
        for number, message in enumerate(body.batch, 1)
    ]


def unremembered(
    said: Sequence[Said], request: RunRequest, drafts: Sequence[Draft]
) -> dict[int, GateReason]:
    """Why messages led to no proposal, by their number from 0.

    What an assistant says is read to understand its user: it has no reason of its own.
    """
    named = {message_id for draft in drafts for message_id in draft.proposed.evidence}
    turns = {turn.message_id for turn in request.reading.turns}
    found = {}
    for number, message in enumerate(said):
        if message.message_id in named or message.role == "assistant":
            continue
        reason = NOTHING_FOUND if message.message_id in turns else NOT_READ
        if reason is NOT_READ and message.role == "user":
            reason = NO_TEXT
        found[number] = replace(reason, figures={"message": number})
    if not found and not drafts:
        # Only an assistant spoke.
        return {
            number: replace(NOT_READ, figures={"message": number}) for number in range(len(said))
        }
    return found


NOTHING_FOUND: Final = GateReason(
    "nothing_found", "Nothing was found in it that is worth remembering.", {}
)
NOT_READ: Final = GateReason("not_read", "Only what a user says is read for memories.", {})
NO_TEXT: Final = GateReason("not_read", "The message holds no text to read.", {})


def caller_of(tenant: Principal, payload: Mapping[str, Any]) -> Principal:
    """The one who ordered, restricted and entitled as when the order was placed."""
    return Principal(
        Access(
            tenant.tenant_id,
            payload.get("agent_id"),
            payload.get("user_id"),
            own_prefix=payload.get("own_prefix"),
        ),
        tenant.key_id,
        frozenset(payload.get("scopes", ["write"])),
        tenant.config,
        tenant.embedding_models,
    )
