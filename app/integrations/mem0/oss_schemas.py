"""Requests of clients of mem0's self-hosted server, as they cross HTTP."""

from typing import Annotated, Literal

from pydantic import Field

from app.integrations.mem0.schemas import Filters, TopK
from app.memory.memories.schemas import BATCH, Content, SaidMessage
from app.platform.values.fields import Metadata, OwnId, Schema, example


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
