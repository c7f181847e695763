"""What can go wrong with a project."""

from app.errors import ForbiddenError, NotFoundError


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
            f"{user_id} is a viewer of {project_id} and may not write there.",
            project_id=project_id,
            user_id=user_id,
        )
