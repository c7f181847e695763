"""SQL for the maintenance of one tenant's messages: what searches cannot read yet, and its
vectors.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.capture import Said
from app.conversation.messages.models import WAITING, WITHOUT_PIECES, WITHOUT_VECTORS
from app.identity.agents.embedders import InForce
from app.language.text.terms import ANALYSER_VERSION

_COLUMNS = """
m.message_id, m.role, m.content, m.content_parts, m.tool_calls, m.metadata, m.name,
m.sequence_no, m.create_time, m.terms IS NOT NULL AS read, m.embedding_model AS old,
nullif(a.config->>'embedding', '') AS handle
"""

_OF_AGENT = (
    "LEFT JOIN agents a ON a.tenant_id = CAST(:tenant_id AS text) AND a.agent_id = m.agent_id"
)

# Limited scans: joined by OR, each batch would look at everything that is left.
_UNREAD = f"""
WITH chosen AS (
    (SELECT message_id FROM messages
     WHERE tenant_id = CAST(:tenant_id AS text) AND analyser IS NULL LIMIT :limit)
    UNION
    (SELECT message_id FROM messages
     WHERE tenant_id = CAST(:tenant_id AS text) AND analyser < :version LIMIT :limit)
    UNION
    (SELECT message_id FROM messages
     WHERE tenant_id = CAST(:tenant_id AS text) AND {WITHOUT_PIECES} LIMIT :limit)
)
SELECT {_COLUMNS} FROM chosen
JOIN messages m ON m.tenant_id = CAST(:tenant_id AS text) AND m.message_id = chosen.message_id
{_OF_AGENT} LIMIT :limit
"""

_OF_SESSION = f"""
SELECT {_COLUMNS} FROM messages m {_OF_AGENT}
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.session_id = CAST(:session_id AS text)
  AND m.sequence_no > :after AND ({WAITING})
ORDER BY m.sequence_no LIMIT :limit
"""

# `in_force` holds only what this deployment can resolve, so the rest stays as it is.
_OTHER_MODEL = f"""
FROM messages m {_OF_AGENT}
JOIN unnest(CAST(:handles AS text[]), CAST(:models AS text[])) AS in_force(handle, model)
  ON in_force.handle = coalesce(nullif(a.config->>'embedding', ''), CAST(:home AS text))
WHERE m.tenant_id = CAST(:tenant_id AS text)
  AND m.terms IS NOT NULL
  AND (m.embedding_model IS DISTINCT FROM in_force.model OR ({WITHOUT_VECTORS}))
"""

_COUNT = f"""
SELECT count(*) FROM (
    SELECT m.message_id {_OTHER_MODEL}
    UNION
    SELECT m.message_id FROM messages m WHERE m.tenant_id = CAST(:tenant_id AS text)
      AND (m.analyser IS NULL OR m.analyser < :version OR ({WITHOUT_PIECES}))
) AS waiting
"""

_NEXT = f"""
SELECT {_COLUMNS}, in_force.model AS new {_OTHER_MODEL}
  AND m.message_id > CAST(:after AS text) ORDER BY m.message_id LIMIT :limit
"""

# Somebody else holds what is being deleted, and may wait for these rows in turn.
_LOCKED = """
WITH locked AS MATERIALIZED (
    SELECT message_id FROM messages
    WHERE tenant_id = CAST(:tenant_id AS text) AND message_id = ANY (CAST(:ids AS text[]))
    FOR NO KEY UPDATE SKIP LOCKED
)
"""

_WORDS: Final[Mapping[str, str]] = {
    "terms": "sparsevec",
    "term_count": "int2",
    "word_count": "int2",
    "is_question": "bool",
    "has_time": "bool",
    "analyser": "int2",
    "said_at": "timestamptz",
    "states_wish": "bool",
    "searched_text": "text",
    "piece_ends": "int4[]",
    "piece_terms": "sparsevec[]",
    "piece_term_counts": "int2[]",
}

_SET_WORDS = ", ".join(f"{name} = CAST(v.{name} AS {kind})" for name, kind in _WORDS.items())
_WORD_ARRAYS = ", ".join(f"CAST(:{name} AS text[])" for name in _WORDS)

_WRITE_WORDS = f"""{_LOCKED}
UPDATE messages m SET {_SET_WORDS}, piece_embeddings = CASE
    WHEN m.piece_ends IS NOT DISTINCT FROM CAST(v.piece_ends AS int4[]) THEN m.piece_embeddings END
FROM unnest(CAST(:ids AS text[]), {_WORD_ARRAYS})
  AS v(message_id, {", ".join(_WORDS)}), locked
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.message_id = v.message_id
  AND locked.message_id = v.message_id
RETURNING m.message_id, m.embedding_model IS NOT NULL
    AND (m.piece_ends IS NULL OR m.piece_embeddings IS NOT NULL) AS whole
"""

_WRITE_VECTORS = f"""{_LOCKED}
UPDATE messages m SET embedding = CAST(v.vector AS vector),
    piece_embeddings = CAST(v.pieces AS vector[]), embedding_model = v.model
FROM unnest(CAST(:ids AS text[]), CAST(:old AS text[]), CAST(:models AS text[]),
    CAST(:vectors AS text[]), CAST(:pieces AS text[]))
    AS v(message_id, old, model, vector, pieces), locked
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.message_id = v.message_id
  AND locked.message_id = v.message_id AND m.embedding_model IS NOT DISTINCT FROM v.old
"""


class Unfinished(NamedTuple):
    """A message that a search cannot read, or not compare.

    Args:
        read: whether it has terms.
        old: the model of the vector it has.
        handle: the embedder that its agent names.

    """

    said: Said
    read: bool
    old: str | None
    handle: str | None
    new: str | None = None
    """The model in force for it, where that was asked for."""


class MessageMaintenanceRepository:
    """Upkeep of one tenant's messages. Never begins or ends a transaction.

    Messages that are locked by a deletion are skipped.
    """

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def unread(self, limit: int) -> list[Unfinished]:
        """Messages that no analyser has read, or an older one, in no order."""
        return await self._rows(_UNREAD, limit=limit, version=ANALYSER_VERSION)

    async def of_session(self, session_id: str, *, after: int, limit: int) -> list[Unfinished]:
        """The next messages of a session that are unread or have no vector, by number."""
        return await self._rows(_OF_SESSION, session_id=session_id, after=after, limit=limit)

    async def count_waiting(self, in_force: InForce) -> int:
        """How many messages are to be read, or have no vector of the model in force for them."""
        parameters = in_force.parameters() | {
            "tenant_id": self._tenant_id,
            "version": ANALYSER_VERSION,
        }
        return int(await self._db.scalar(text(_COUNT), parameters) or 0)

    async def next_waiting(self, in_force: InForce, *, after: str, limit: int) -> list[Unfinished]:
        """The next by id that are read and have no vector of the model in force for them."""
        return await self._rows(_NEXT, after=after, limit=limit, **in_force.parameters())

    async def _rows(self, statement: str, **parameters: Any) -> list[Unfinished]:
        rows = await self._db.execute(text(statement), parameters | {"tenant_id": self._tenant_id})
        return [
            Unfinished(
                Said(
                    message_id=row.message_id,
                    role=row.role,
                    content=row.content,
                    content_parts=row.content_parts,
                    tool_calls=row.tool_calls,
                    metadata=row.metadata,
                    name=row.name,
                    sequence_no=row.sequence_no,
                    create_time=row.create_time,
                ),
                row.read,
                row.old,
                row.handle,
                getattr(row, "new", None),
            )
            for row in rows
        ]

    async def write_words(self, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
        """What the analyser made of messages, by id; of those still there, whether they have all
        vectors. The pieces of a message that is cut otherwise than before have none.
        """
        values = {
            name: [_as_text(message[name]) for message in columns.values()] for name in _WORDS
        }
        parameters = values | {"ids": list(columns), "tenant_id": self._tenant_id}
        rows = await self._db.execute(text(_WRITE_WORDS), parameters)
        return {row.message_id: row.whole for row in rows}

    async def write_vectors(
        self, rows: Sequence[Unfinished], models: Sequence[str], vectors: Sequence[Sequence[Any]]
    ) -> int:
        """Vectors of messages; how many are still there and have got none meanwhile.

        Args:
            vectors: of each message and then of its pieces, where it has several.

        """
        return await self._write(
            _WRITE_VECTORS,
            ids=[row.said.message_id for row in rows],
            old=[row.old for row in rows],
            models=list(models),
            vectors=[_vector(vector[0]) for vector in vectors],
            pieces=[
                _as_text([_vector(piece) for piece in vector[1:]] or None) for vector in vectors
            ],
        )

    async def _write(self, statement: str, **parameters: Any) -> int:
        result: Any = await self._db.execute(
            text(statement), parameters | {"tenant_id": self._tenant_id}
        )
        return int(result.rowcount)


def _as_text(value: Any) -> str | None:
    """A value as PostgreSQL reads it."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return "{" + ",".join(f'"{_as_text(each)}"' for each in value) + "}"
    return str(value.to_text()) if hasattr(value, "to_text") else str(value)


def _vector(numbers: Sequence[float]) -> str:
    return f"[{','.join(f'{number:.9g}' for number in numbers)}]"
