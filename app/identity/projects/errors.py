"""What can go wrong with a project."""

from collections.abc import Sequence

from app.errors import ConflictError, ForbiddenError, NotFoundError


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
