"""Rows of a large tenant, made by the database out of a few texts that are read once."""

from dataclasses import dataclass
from typing import Final

import asyncpg
from pgvector.asyncpg import register_vector

from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.memory.memories.searchable import row_terms

SUBJECTS: Final = ("She", "He", "The neighbour", "Her brother", "My colleague")
DOINGS: Final = (
    "keeps bees", "plays chess", "drinks green tea", "repairs bicycles", "collects stamps",
    "grows tomatoes", "paints boats", "bakes bread", "climbs mountains", "studies Chinese",
)  # fmt: skip
PLACES: Final = (
    "in Munich", "in Hamburg", "by the lake", "at home", "in the old mill", "on Sundays",
    "every morning", "with friends", "since the winter", "在北京",
)  # fmt: skip
TEXTS: Final = tuple(
    f"{who} {does} {where}." for who in SUBJECTS for does in DOINGS for where in PLACES
)


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows.

    The first user has `of_first` of the memories, and half of the sessions.
    """

    users: int = 0
    sessions: int = 0
    messages: int = 0
    memories: int = 0
    of_first: int = 0
    verdicts: int = 0


_USERS: Final = """
INSERT INTO users (tenant_id, user_id, agent_id, create_time)
SELECT $1, 'user-' || lpad(n::text, 7, '0'), 'helper', now() - interval '1 s' * n
FROM generate_series(0, $2::int - 1) AS n
"""

_SESSIONS: Final = """
INSERT INTO sessions (tenant_id, session_id, agent_id, user_id, create_time)
SELECT $1, 'session-' || lpad(n::text, 7, '0'), 'helper',
    'user-' || lpad((CASE WHEN n % 2 = 0 THEN 0 ELSE n % $3 END)::text, 7, '0'),
    now() - interval '1 s' * n
FROM generate_series(0, $2::int - 1) AS n
"""

_MESSAGES: Final = """
INSERT INTO messages (tenant_id, message_id, session_id, agent_id, user_id, sequence_no, role,
    content, token_count, create_time)
SELECT $1, 'msg_' || n, 'session-0000000', 'helper', 'user-0000000', n,
    CASE WHEN n % 2 = 1 THEN 'user' ELSE 'assistant' END, 'Line ' || n || '.', 4,
    now() - interval '1 s' * ($2::int - n)
FROM generate_series(1, $2::int) AS n
"""

_COUNT_MESSAGES: Final = """
UPDATE sessions SET last_sequence_no = counted, last_extracted_seq = counted,
    window_tokens = 4 * counted, window_messages = counted, window_seq = counted,
    last_user_seq = counted - 1
FROM (SELECT $2::bigint AS counted) AS written
WHERE tenant_id = $1 AND session_id = 'session-0000000'
"""

# A row's words are those of its text; the number behind it makes each row one of its own.
_MEMORIES: Final = """
INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, content, content_hash,
    memory_type, tier, source, confidence, visibility, embedding, embedding_model, code, terms,
    term_count, word_count, is_question, has_time, analyser, create_time)
SELECT $1, 'mem_' || lpad(n::text, 9, '0'), owner, 'user', owner, texts.content || ' ' || n,
    decode(md5(n::text), 'hex'), (ARRAY['fact', 'habit', 'event', 'preference'])[n % 4 + 1],
    'long', 'user', 0.9, 'members', texts.embedding, $4,
    CASE WHEN n < $3 THEN binary_quantize(texts.embedding)::bit varying END, texts.terms,
    texts.term_count, texts.word_count, false, false, texts.analyser, now() - interval '10 s' * n
FROM generate_series(0, $2::int - 1) AS n
JOIN texts ON texts.number = n % (SELECT count(*) FROM texts)
CROSS JOIN LATERAL (
    SELECT 'user-' || lpad((CASE WHEN n < $3 THEN 0 ELSE n % $5 END)::text, 7, '0') AS owner
) AS owned
"""

_BUCKET: Final = """
INSERT INTO memory_buckets (tenant_id, scope, scope_id, embedding_model, rows, coded_at)
VALUES ($1, 'user', 'user-0000000', $2, $3, now())
"""

_VERDICTS: Final = """
INSERT INTO gate_decisions (tenant_id, decision_id, verdict, codes, event, content, scope, source,
    user_id, agent_id, create_time)
SELECT $1, 'gat_' || lpad(n::text, 9, '0'), CASE WHEN n % 4 = 0 THEN 'rejected' ELSE 'accepted' END,
    CASE WHEN n % 4 = 0 THEN ARRAY['too_short', 'low_confidence'] ELSE '{}' END,
    CASE WHEN n % 4 = 0 THEN 'REJECT' ELSE 'ADD' END, 'Text ' || n, 'user', 'user',
    'user-0000000', 'helper', now() - interval '90 days' * n / $2
FROM generate_series(0, $2::int - 1) AS n
"""


async def fill_tenant(connection: asyncpg.Connection, tenant_id: str, size: Size) -> None:
    """Give a new tenant that many rows, as the superuser, whom no policy binds.

    The memories of the first user have codes, as housekeeping makes them of large buckets.
    """
    await register_vector(connection)
    # Rows are right as they are made; looking each owner up takes half of the time.
    await connection.execute("SET session_replication_role = replica; SET synchronous_commit = off")
    await connection.execute(
        "INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'helper', 'Helper')",
        tenant_id,
    )
    await _make_texts(connection)
    users = max(size.users, 1)
    await connection.execute(_USERS, tenant_id, users)
    await connection.execute(_SESSIONS, tenant_id, size.sessions, users)
    await connection.execute(
        _MEMORIES, tenant_id, size.memories, size.of_first, WordLlamaEmbedder.name, users
    )
    await connection.execute(_BUCKET, tenant_id, WordLlamaEmbedder.name, size.of_first)
    await connection.execute(_VERDICTS, tenant_id, size.verdicts)
    if size.messages:
        await connection.execute(_MESSAGES, tenant_id, size.messages)
        await connection.execute(_COUNT_MESSAGES, tenant_id, size.messages)
    await connection.execute(
        "UPDATE tenants SET embedding_models = ARRAY[$2] WHERE tenant_id = $1",
        tenant_id,
        WordLlamaEmbedder.name,
    )
    await connection.execute("VACUUM ANALYZE")


async def _make_texts(connection: asyncpg.Connection) -> None:
    await connection.execute(
        "CREATE TEMPORARY TABLE texts AS SELECT 0 AS number, content, embedding, terms, "
        "term_count, word_count, analyser FROM memories WITH NO DATA"
    )
    vectors = await WordLlamaEmbedder.load().embed(list(TEXTS))
    records = []
    for number, (text, vector) in enumerate(zip(TEXTS, vectors, strict=True)):
        read = row_terms(text, {}, None)
        records.append(
            (number, text, vector, read["terms"], read["term_count"], read["word_count"],
             read["analyser"])
        )  # fmt: skip
    await connection.copy_records_to_table("texts", records=records)
    await connection.execute("ANALYZE texts")
