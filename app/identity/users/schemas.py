"""Users as they cross HTTP, and what can go wrong with one."""

from typing import Any

from pydantic import Field

from app.errors import NotFoundError, UnprocessableError
from app.identity.tenants.schemas import Status
from app.platform.values.fields import (
    Document,
    Kind,
    Name,
    OwnId,
    ReadSchema,
    Schema,
    Timestamp,
    example,
)
from app.platform.values.pagination import PageQuery


class UserCreate(Schema):
    model_config = example(user_id="ana", agent_id="support", user_name="李明")

    user_id: OwnId | None = Field(default=None, description="Generated when left out.")
    agent_id: OwnId | None = Field(
        default=None, description="The home agent; the tenant's default agent when left out."
    )
    user_name: Name | None = Field(default=None, examples=["李明"])
    user_type: Kind | None = Field(default=None, examples=["individual"])
    external_id: Name | None = Field(
        default=None, description="Your own second id, unique among the agent's users."
    )
    profile: Document = {}
    status: Status = "enabled"


class UserPatch(Schema):
    model_config = example(profile={"language": "zh"})

    agent_id: OwnId | None = None
    user_name: Name | None = None
    user_type: Kind | None = None
    external_id: Name | None = None
    profile: Document | None = None
    status: Status | None = None


class UserRead(ReadSchema):
    user_id: str
    agent_id: str
    user_name: str | None
    user_type: str | None
    external_id: str | None
    profile: dict[str, Any]
    status: Status
    last_active_time: Timestamp | None = Field(description="Last appended message.")
    version: int
    create_time: Timestamp
    update_time: Timestamp


class UserQuery(PageQuery):
    agent_id: OwnId | None = None
    status: Status | None = None
    user_type: Kind | None = None
    external_id: Name | None = None
    starts_with: Name | None = Field(
        default=None,
        description="Users whose id or name starts with this: the id as it is written here, the "
        "name as written, in lower case, in upper case or with capital first letters.",
    )


class UserNotFoundError(NotFoundError):
    code = "user_not_found"
    title = "User not found"

    def __init__(self, user_id: str) -> None:
        super().__init__(f"No user {user_id}.", user_id=user_id)


class UserRequiredError(UnprocessableError):
    code = "user_required"
    title = "No user named"

    def __init__(self) -> None:
        super().__init__(
            "Name the user: only a key restricted to one may leave `user_id` out.",
            errors=[{"location": ["body", "user_id"], "detail": "required here"}],
        )
