"""The tables of the ledger: what was used by day, and answers of models still to be used."""

from datetime import date, datetime

from sqlalchemy import (
    Date,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    String,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned


class Usage(TenantOwned, Base):
    """Calls and tokens of one model for one operation on one day (UTC)."""

    __tablename__ = "usage"

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    operation: Mapped[str] = mapped_column(String(40), primary_key=True)
    model: Mapped[str] = mapped_column(String(255), primary_key=True)
    calls: Mapped[int] = mapped_column(server_default=text("0"))
    failures: Mapped[int] = mapped_column(server_default=text("0"))
    input_tokens: Mapped[int] = mapped_column(server_default=text("0"))
    output_tokens: Mapped[int] = mapped_column(server_default=text("0"))


class DailyCount(TenantOwned, Base):
    """How many of something there were on one day (UTC), for one agent; no user is named.

    `agent_id` is empty where no agent was; `label` says what the name leaves open, such as the rule
    of a refusal, and is empty otherwise.
    """

    __tablename__ = "daily_counts"

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    name: Mapped[str] = mapped_column(String(40, collation="C"), primary_key=True)
    agent_id: Mapped[str] = mapped_column(Id, primary_key=True)
    label: Mapped[str] = mapped_column(String(100, collation="C"), primary_key=True)
    count: Mapped[int]


class PaidAnswer(TenantOwned, Base):
    """An answer of a chat model that is paid for, until what it was bought for is stored.

    `answer_key` is the hash of the question; `purpose` says what the answer is for, and the ids
    whose words it may hold. `answer` is JSON as bytes, because a model may write a NUL, which jsonb
    refuses.
    """

    __tablename__ = "model_answers"
    __table_args__ = (
        *(
            ForeignKeyConstraint(
                ["tenant_id", f"{owner}_id"],
                [f"{owner}s.tenant_id", f"{owner}s.{owner}_id"],
                ondelete="CASCADE",
            )
            for owner in ("session", "user", "agent", "project")
        ),
        *(
            Index(f"model_answers_idx_{column}", "tenant_id", column)
            for column in (
                "purpose", "create_time", "agent_id", "user_id", "project_id", "session_id",
            )
        ),
    )  # fmt: skip

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    answer_key: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    operation: Mapped[str] = mapped_column(String(40))
    purpose: Mapped[str] = mapped_column(String(255, collation="C"))
    agent_id: Mapped[str | None] = mapped_column(Id)
    user_id: Mapped[str | None] = mapped_column(Id)
    project_id: Mapped[str | None] = mapped_column(Id)
    session_id: Mapped[str | None] = mapped_column(Id)
    answer: Mapped[bytes] = mapped_column(LargeBinary)
    create_time: Mapped[datetime] = mapped_column(server_default=text("now()"))
