"""What letting go looks like over HTTP."""

from typing import Literal

from pydantic import Field

from app.web.fields import Schema, Shown


class ErasureQuery(Schema):
    confirm: bool = Field(default=False, description="Required when it holds anything.")
    dry_run: bool = Field(default=False, description="Only count.")


class Receipt(Shown):
    """What went, in figures; nothing of what it said."""

    kind: Literal["agent", "user", "project", "session"]
    id: str
    deleted: dict[str, int] = Field(
        description="Rows deleted, or that would be.",
        examples=[{"sessions": 2, "messages": 41, "memories": 17}],
    )
    dry_run: bool
