"""Projects and their members as they cross HTTP, and what can go wrong with one."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from app.errors import ConflictError, ForbiddenError, NotFoundError
from app.platform.values.fields import (
    Description,
    Metadata,
    Name,
    OwnId,
    ReadSchema,
    Schema,
    Timestamp,
    example,
)
from app.platform.values.pagination import PageQuery

Role = Literal["owner", "admin", "editor", "viewer"]


class ProjectCreate(Schema):
    model_config = example(project_id="payments", project_name="Payments", owner_id="ana")

    project_id: OwnId | None = Field(default=None, description="Generated when left out.")
    project_name: Name = Field(examples=["Payments"])
    description: Description | None = None
    metadata: Metadata = {}
    owner_id: OwnId | None = Field(
        default=None,
        description="A user who becomes the first member, as owner; the acting user when "
        "there is one.",
    )


class ProjectPatch(Schema):
    model_config = example(description="Everything about paying.")

    project_name: Name | None = None
    description: Description | None = None
    metadata: Metadata | None = None


class ProjectRead(ReadSchema):
    project_id: str
    project_name: str
    description: str | None
    metadata: dict[str, Any] = Field(validation_alias="metadata_")
    creator: str | None
    version: int
    create_time: Timestamp
    update_time: Timestamp


class ProjectQuery(PageQuery):
    user_id: OwnId | None = Field(default=None, description="Only projects of this member.")


class MemberPut(Schema):
    model_config = example(role="editor")

    role: Role = "editor"


class MemberRead(ReadSchema):
    project_id: str
    user_id: str
    role: Role
    create_time: Timestamp
    update_time: Timestamp


class ProjectTransfer(Schema):
    model_config = example(to_user_id="bob")

    to_user_id: OwnId = Field(description="The user who becomes the owner, a member or not.")


class ProjectTransferred(ReadSchema):
    model_config = example(project_id="payments", owner_id="bob", former_owners=["ana"])

    project_id: str
    owner_id: str
    former_owners: list[str] = Field(description="Who was an owner and is an admin now.")


class ProjectNotFoundError(NotFoundError):
    code = "project_not_found"
    title = "Project not found"

    def __init__(self, project_id: str) -> None:
        super().__init__(f"No project {project_id}.", project_id=project_id)


class MemberNotFoundError(NotFoundError):
    code = "member_not_found"
    title = "Member not found"

    def __init__(self, project_id: str, user_id: str) -> None:
        super().__init__(
            f"The project {project_id} has no member {user_id}.",
            project_id=project_id,
            user_id=user_id,
        )


class ReadOnlyMemberError(ForbiddenError):
    code = "read_only_member"
    title = "Member may only read"

    def __init__(self, project_id: str, user_id: str) -> None:
        super().__init__(
            f"{user_id} may only read in {project_id}, and not write there.",
            project_id=project_id,
            user_id=user_id,
        )


class InsufficientRoleError(ForbiddenError):
    code = "insufficient_role"
    title = "Role may not do that"

    def __init__(self, project_id: str, role: str, required: Sequence[str]) -> None:
        super().__init__(
            f"In {project_id} this takes the role {' or '.join(required)}; yours is {role}.",
            project_id=project_id,
            role=role,
            required_roles=list(required),
        )


class LastOwnerError(ConflictError):
    code = "last_owner"
    title = "Last owner of the project"

    def __init__(self, project_id: str, user_id: str) -> None:
        super().__init__(
            f"{user_id} is the last owner of {project_id}. Hand it over first "
            f"(`POST /v1/projects/{project_id}/transfer`), or delete it.",
            project_id=project_id,
            user_id=user_id,
        )
