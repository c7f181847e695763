"""Base of every table: names of constraints, the tenant key, the columns all tables share."""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, MetaData, String, func
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

ID_LENGTH = 64

Id = String(ID_LENGTH, collation="C")
"""Ids are compared byte by byte: the same order in every locale, and the fastest one."""

Timestamp = TIMESTAMP(timezone=True, precision=6)


class Base(DeclarativeBase):
    """Every table of the service; `registry.py` gathers them."""

    metadata = MetaData(
        naming_convention={
            # Index names are schema-wide in PostgreSQL, so each begins with its table.
            "ix": "%(table_name)s_idx_%(column_0_N_name)s",
            "uq": "%(table_name)s_uk_%(column_0_N_name)s",
            "ck": "%(table_name)s_ck_%(constraint_name)s",
            "fk": "%(table_name)s_fk_%(referred_table_name)s",
            "pk": "%(table_name)s_pkey",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: Timestamp,
        dict[str, Any]: JSONB,
        int: BigInteger,
    }


class Timed:
    """When a row was made and last changed; the second is kept by a trigger."""

    create_time: Mapped[datetime] = mapped_column(server_default=func.now())
    update_time: Mapped[datetime] = mapped_column(server_default=func.now())


class TenantOwned:
    """First half of every primary key.

    Foreign keys between such tables carry both columns, so PostgreSQL itself refuses a row
    that points across tenants, and row-level security hides what is another's.
    """

    tenant_id: Mapped[str] = mapped_column(Id, primary_key=True, sort_order=-1)
