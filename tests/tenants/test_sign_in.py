"""One-time codes: good for minutes, for one key, once."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.identity.tenants.errors import ExpiredSignInCodeError, UsedSignInCodeError
from app.identity.tenants.sign_in_service import CODE_LIFE, KEY_LIFE, SignInService
from app.runtime import Runtime
from tests.support.api import execute, ok, problem
from tests.support.locks import holding
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller, tenants

URL = "http://127.0.0.1/dashboard/sign-in"
START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def sign_ins(runtime: Runtime, at: datetime | None = None) -> SignInService:
    """The service, at a moment of the test's own where there is one."""
    return SignInService(runtime.work, tenants(runtime), (lambda: at) if at else runtime.now)


@pytest.fixture
async def anyone(app: FastAPI):
    async with client_of(app, None) as client:
        yield client


def carrying(code: str) -> dict[str, str]:
    return {"Authorization": f"Code {code}"}


async def test_code_becomes_a_key_of_twelve_hours(
    anyone: AsyncClient, runtime: Runtime, acme: Caller, app: FastAPI
) -> None:
    code = await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])
    before = datetime.now(UTC)

    made = ok(await anyone.post(URL, headers=carrying(code)), 201)

    assert (made["key_name"], made["scopes"]) == ("dashboard", ["admin"])
    ends = datetime.fromisoformat(made["expires_at"])
    assert before + KEY_LIFE <= ends <= datetime.now(UTC) + KEY_LIFE
    async with client_of(app, made["key"]) as signed_in:
        assert made["key_id"] in [
            key["key_id"] for key in ok(await signed_in.get("/keys"))["items"]
        ]


async def test_code_is_known_by_its_hash_alone(runtime: Runtime, acme: Caller, dsn: str) -> None:
    code = await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])

    [row] = await execute(
        dsn,
        "SELECT code_hash, to_jsonb(sign_in_codes)::text AS shown FROM sign_in_codes "
        "WHERE tenant_id = $1",
        acme.tenant_id,
    )

    assert row["code_hash"] == hashlib.sha256(code.encode()).digest()
    assert code.partition("!")[2] not in row["shown"]


@pytest.mark.parametrize(
    ("later", "good"),
    [
        (CODE_LIFE - timedelta(microseconds=1), True),
        (CODE_LIFE, False),
        (CODE_LIFE + timedelta(microseconds=1), False),
    ],
)
async def test_code_ends_when_its_life_is_over(
    runtime: Runtime, acme: Caller, later: timedelta, *, good: bool
) -> None:
    code = await sign_ins(runtime, START).add_code(acme.tenant_id, ["admin"])
    service = sign_ins(runtime, START + later)

    if good:
        assert (await service.sign_in(code)).expires_at == START + later + KEY_LIFE
    else:
        with pytest.raises(ExpiredSignInCodeError):
            await service.sign_in(code)


async def test_code_is_used_once(anyone: AsyncClient, runtime: Runtime, acme: Caller) -> None:
    code = await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])
    ok(await anyone.post(URL, headers=carrying(code)), 201)

    refused = await anyone.post(URL, headers=carrying(code))

    assert "signed in a browser already" in problem(refused, 401, "used_sign_in_code")["detail"]


async def test_two_browsers_at_once_get_one_key(
    runtime: Runtime, acme: Caller, dsn: str, client: AsyncClient
) -> None:
    """Both are in their transactions, on connections of their own, before either can go on."""
    service = sign_ins(runtime)
    code = await service.add_code(acme.tenant_id, ["admin"])
    whose = f"WHERE tenant_id = '{acme.tenant_id}'"
    waiting = "SELECT DISTINCT pid FROM pg_locks WHERE NOT granted"

    async with holding(dsn, f"SELECT 1 FROM sign_in_codes {whose} FOR UPDATE"):
        both = [asyncio.create_task(service.sign_in(code)) for _ in range(2)]
        async with asyncio.timeout(PATIENCE):
            while len(await execute(dsn, waiting)) < 2:  # noqa: ASYNC110 (PostgreSQL knows)
                await asyncio.sleep(0.05)
    ends = await asyncio.gather(*both, return_exceptions=True)

    assert sorted(type(end).__name__ for end in ends) == [
        "KeyCreated",
        UsedSignInCodeError.__name__,
    ]
    names = [key["key_name"] for key in ok(await client.get("/keys"))["items"]]
    assert names.count("dashboard") == 1


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer kem_nobody"}, *map(carrying, [
        "", "!", "nobody", f"nobody!{'0' * 48}", f"no body!{'0' * 48}", f"{'n' * 70}!{'0' * 48}",
    ])],
)  # fmt: skip
async def test_other_codes_are_unknown(anyone: AsyncClient, headers: dict[str, str]) -> None:
    refused = problem(await anyone.post(URL, headers=headers), 401, "unknown_sign_in_code")

    assert "nobody" not in refused["detail"]


async def test_code_of_one_tenant_is_none_of_another(
    anyone: AsyncClient, runtime: Runtime, acme: Caller, other: Caller
) -> None:
    code = await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])
    elsewhere = code.replace(acme.tenant_id, other.tenant_id)

    problem(await anyone.post(URL, headers=carrying(elsewhere)), 401, "unknown_sign_in_code")
    ok(await anyone.post(URL, headers=carrying(code)), 201)


@pytest.mark.parametrize(
    ("later", "left"),
    [
        (timedelta(days=1) - timedelta(microseconds=1), 2),
        (timedelta(days=1), 2),
        (timedelta(days=1, microseconds=1), 1),
    ],
)
async def test_codes_that_ended_a_day_ago_are_removed(
    runtime: Runtime, acme: Caller, dsn: str, later: timedelta, left: int
) -> None:
    await sign_ins(runtime, START).add_code(acme.tenant_id, ["admin"])

    await sign_ins(runtime, START + CODE_LIFE + later).add_code(acme.tenant_id, ["admin"])

    whose = "SELECT 1 FROM sign_in_codes WHERE tenant_id = $1"
    assert len(await execute(dsn, whose, acme.tenant_id)) == left


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("http://10.1.2.3/dashboard/sign-in", {}),
        (URL, {"X-Forwarded-For": "10.1.2.3"}),
        (URL, {"Via": "1.1 edge"}),
    ],
)
async def test_codes_are_for_this_machine_alone(
    anyone: AsyncClient, runtime: Runtime, acme: Caller, url: str, header: dict[str, str]
) -> None:
    code = await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])

    refused = await anyone.post(url, headers=carrying(code) | header)

    problem(refused, 401, "unknown_sign_in_code")
    ok(await anyone.post(URL, headers=carrying(code)), 201)


@pytest.mark.parametrize(
    ("later", "left"),
    [
        (timedelta(days=1) - timedelta(microseconds=1), 1),
        (timedelta(days=1), 1),
        (timedelta(days=1, microseconds=1), 0),
    ],
)
async def test_keys_of_links_that_expired_a_day_ago_are_removed(
    runtime: Runtime, acme: Caller, client: AsyncClient, later: timedelta, left: int
) -> None:
    service = sign_ins(runtime, START)
    await service.sign_in(await service.add_code(acme.tenant_id, ["admin"]))
    others = [key["key_id"] for key in ok(await client.get("/keys"))["items"]][1:]

    await sign_ins(runtime, START + KEY_LIFE + later).add_code(acme.tenant_id, ["admin"])

    keys = ok(await client.get("/keys"))["items"]
    assert sum(key["key_name"] == "dashboard" for key in keys) == left
    assert [key["key_id"] for key in keys if key["key_name"] != "dashboard"] == others


async def test_expired_keys_of_other_names_and_tenants_stay(
    runtime: Runtime, acme: Caller, other: Caller, client: AsyncClient, dsn: str
) -> None:
    service = sign_ins(runtime, START)
    await service.sign_in(await service.add_code(other.tenant_id, ["admin"]))
    made = ok(await client.post("/keys", json={"key_name": "ci", "scopes": ["read"]}), 201)
    expire = "UPDATE api_keys SET expires_at = $2 WHERE key_id = $1"
    await execute(dsn, expire, made["key_id"], START)

    await sign_ins(runtime).add_code(acme.tenant_id, ["admin"])

    assert made["key_id"] in [key["key_id"] for key in ok(await client.get("/keys"))["items"]]
    whose = "SELECT 1 FROM api_keys WHERE tenant_id = $1 AND key_name = 'dashboard'"
    assert len(await execute(dsn, whose, other.tenant_id)) == 1
