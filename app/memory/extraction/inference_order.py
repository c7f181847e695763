"""The order to infer memories from a request's messages later. Pure."""

from collections.abc import Mapping
from typing import Any

from app.conversation.sessions.jobs import ATTEMPTS
from app.identity.tenants.access import Principal
from app.memory.memories.owner import MemoryOwner
from app.platform.database.ids import new_id
from app.platform.jobs.orders import Order

INFER = "infer"


def infer(principal: Principal, body: Mapping[str, Any], place: MemoryOwner) -> Order:
    """The order for messages of a request; each is a job of its own.

    It bears the ids of everybody whose words it holds until then, so that an erasure finds it.
    """
    access = principal.access
    return Order(
        kind=INFER,
        key=new_id("inf"),
        agent_id=place.agent_id,
        user_id=place.user_id,
        session_id=place.session_id,
        creator=principal.key_id,
        max_attempts=ATTEMPTS,
        payload={
            "body": dict(body),
            "scopes": sorted(principal.scopes),
            "agent_id": access.agent_id,
            "user_id": access.user_id,
        },
    )
