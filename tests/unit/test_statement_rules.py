"""The rules for statements, each broken on purpose."""

import pytest

from tests.support.statements import clock_readings, is_framed, parsed, sets_tenant, tenant_gaps

OWNED = {"memories", "users"}
FRAME = "SELECT hit.* FROM (SELECT set_config('t', $1, true)) AS tenant(id) "


def gaps(text: str) -> list[str]:
    [statement] = parsed(text)
    return tenant_gaps(statement, OWNED)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM memories WHERE tenant_id = $1",
        "SELECT * FROM memories AS m WHERE m.tenant_id = tenant.id AND m.memory_id = $2",
        "SELECT * FROM memories m JOIN users u ON u.tenant_id = CAST($1 AS text) "
        "AND u.user_id = m.user_id WHERE m.tenant_id = $1",
        "SELECT * FROM memories m WHERE (m.tenant_id, m.user_id) = ($1, $2)",
        "WITH users AS (SELECT $1 AS user_id) SELECT * FROM users",
        "SELECT * FROM memories WHERE false",
        "INSERT INTO memories (tenant_id, memory_id) VALUES ($1, $2), ($1, $3)",
        "INSERT INTO memories (memory_id, tenant_id) SELECT id, $1 FROM unnest($2::text[]) u(id)",
        "UPDATE memories m SET user_id = v.id FROM unnest($2::text[]) AS v(id) "
        "WHERE m.tenant_id = $1",
        "DELETE FROM memories m USING users u WHERE m.tenant_id = $1 AND u.tenant_id = $1",
    ],
)
def test_tenant_by_parameter_is_no_gap(text: str) -> None:
    assert gaps(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM memories", ["memories memories"]),
        ("SELECT * FROM memories WHERE tenant_id = $1 OR memory_id = $2", ["memories memories"]),
        (
            "SELECT * FROM memories m JOIN users u ON u.tenant_id = m.tenant_id "
            "WHERE m.tenant_id = $1",
            ["users u"],
        ),
        ("SELECT * FROM memories m, users u WHERE tenant_id = $1", ["users u", "memories m"]),
        (
            "SELECT * FROM memories m WHERE m.tenant_id = $1 AND EXISTS "
            "(SELECT FROM users u WHERE u.tenant_id = m.tenant_id)",
            ["users u"],
        ),
        (
            "WITH found AS (SELECT user_id FROM users) "
            "SELECT * FROM memories m JOIN found USING (user_id) WHERE m.tenant_id = $1",
            ["users users"],
        ),
        ("INSERT INTO memories (memory_id) VALUES ($1)", ["INSERT memories"]),
        ("INSERT INTO memories SELECT * FROM unnest($1::text[])", ["INSERT memories"]),
        (
            "INSERT INTO memories (tenant_id) SELECT u.tenant_id FROM users u "
            "WHERE u.tenant_id = $1",
            ["INSERT memories"],
        ),
        ("UPDATE memories SET user_id = $1 WHERE memory_id = $2", ["memories memories"]),
        (
            "DELETE FROM memories m USING users u "
            "WHERE m.tenant_id = $1 AND u.tenant_id = m.tenant_id",
            ["users u"],
        ),
    ],
)
def test_tenant_by_another_table_is_a_gap(text: str, found: list[str]) -> None:
    assert gaps(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM memories WHERE expires_at > now()",
        "INSERT INTO memories (create_time) VALUES (now())",
        "INSERT INTO memories AS m (create_time) VALUES (now()) "
        "ON CONFLICT (memory_id) DO UPDATE SET create_time = excluded.create_time",
        "UPDATE memories SET expires_at = $1",
    ],
)
def test_clock_beside_changes_is_free(text: str) -> None:
    assert clock_readings(parsed(text)[0]) == []


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE memories SET deleted_at = now()",
        "UPDATE memories SET deleted_at = coalesce(deleted_at, clock_timestamp())",
        "UPDATE memories SET deleted_at = current_timestamp",
        "DELETE FROM memories WHERE expires_at < now()",
        "WITH old AS (SELECT memory_id FROM memories WHERE expires_at < now()) "
        "DELETE FROM memories WHERE memory_id IN (SELECT memory_id FROM old)",
        "INSERT INTO memories (create_time) VALUES ($1) "
        "ON CONFLICT (memory_id) DO UPDATE SET create_time = now()",
        "INSERT INTO memories (create_time) SELECT now() FROM users",
    ],
)
def test_clock_in_a_change_is_found(text: str) -> None:
    assert len(clock_readings(parsed(text)[0])) == 1


def test_tenant_is_set_for_the_transaction_alone() -> None:
    [local, lasting, read, called, called_lasting] = parsed(
        "SET LOCAL a.b = 'x'; SET a.b = 'x'; SELECT 1; "
        "SELECT set_config('a.b', 'x', true); SELECT set_config('a.b', 'x', false)"
    )

    assert sets_tenant(local, "a.b")
    assert not sets_tenant(local, "a.c")
    assert not sets_tenant(lasting, "a.b")
    assert not sets_tenant(read, "a.b")
    assert sets_tenant(called, "a.b")
    assert not sets_tenant(called_lasting, "a.b")


@pytest.mark.parametrize(
    ("text", "framed"),
    [
        (FRAME + "CROSS JOIN LATERAL (SELECT 1 FROM memories) AS hit", True),
        (FRAME + "CROSS JOIN (SELECT 1 FROM memories) AS hit", False),
        ("SELECT 1 FROM memories", False),
        ("SELECT 1 FROM memories WHERE set_config('t', $1, true) <> ''", False),
        (
            "SELECT hit.* FROM (SELECT set_config('t', $1, true) FROM memories) AS tenant(id) "
            "CROSS JOIN LATERAL (SELECT 1) AS hit",
            False,
        ),
    ],
)
def test_frame_sets_the_tenant_first(text: str, framed: bool) -> None:
    assert is_framed(parsed(text)[0]) is framed
