"""SQL for bringing a tenant's vectors over to the embedders in force, whatever they are of."""

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.embedders import InForce


class VectorRepository:
    """Vectors of one tenant's rows of one kind. Never begins or ends a transaction.

    A package that keeps vectors says in SQL which of its rows wait. All statements may name
    `:tenant_id`.
    """

    WAITING: ClassVar[str]
    """`FROM` and `WHERE`: rows whose vector is of another model than `in_force.model`, to which
    `:handles`, `:models` and `:home` lead (`InForce`)."""
    COLUMNS: ClassVar[str]
    """Of such a row: `id`, `content`, `version`, `old` and `new`, the last two models."""
    KEY: ClassVar[str]
    """The column behind `id`."""
    REPLACE: ClassVar[str]
    """Writes `:vectors` of the models `:new` where `:ids` are as `:versions` and `:old` say."""
    PRESENT: ClassVar[str]
    """A condition: there is a row with a vector of `listed.model`."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def count_waiting(self, in_force: InForce) -> int:
        """How many rows have a vector of another model than the one in force for them."""
        parameters = in_force.parameters() | {"tenant_id": self._tenant_id}
        counted = await self._db.scalar(text(f"SELECT count(*) {self.WAITING}"), parameters)
        return int(counted or 0)

    async def next_waiting(self, in_force: InForce, *, after: str, limit: int) -> Sequence[Any]:
        """The next of them by id: `id, content, version, old, new`."""
        statement = (
            f"SELECT {self.COLUMNS} {self.WAITING} AND {self.KEY} > CAST(:after AS text) "
            f"ORDER BY {self.KEY} LIMIT :limit"
        )
        parameters = in_force.parameters() | {
            "tenant_id": self._tenant_id,
            "after": after,
            "limit": limit,
        }
        return (await self._db.execute(text(statement), parameters)).all()

    async def replace_vectors(self, rows: Sequence[Any], vectors: Sequence[Sequence[float]]) -> int:
        """Give rows of `next_waiting` their new vectors; how many had not changed meanwhile."""
        result: Any = await self._db.execute(
            text(self.REPLACE),
            {
                "tenant_id": self._tenant_id,
                "ids": [row.id for row in rows],
                "versions": [row.version for row in rows],
                "old": [row.old for row in rows],
                "new": [row.new for row in rows],
                "vectors": [f"[{','.join(f'{one:.9g}' for one in vector)}]" for vector in vectors],
            },
        )
        return int(result.rowcount)

    async def models_with_rows(self, models: Sequence[str]) -> set[str]:
        """Those of `models` that made a vector which is still here."""
        statement = (
            "SELECT listed.model FROM unnest(CAST(:models AS text[])) AS listed(model) "
            f"WHERE {self.PRESENT}"
        )
        parameters = {"tenant_id": self._tenant_id, "models": list(models)}
        return set(await self._db.scalars(text(statement), parameters))
