"""What users of other memories complain of: none of it happens here."""

from collections.abc import Iterator

import pytest
from httpx import AsyncClient

from tests.support.api import ok, save, search
from tests.support.hits import texts
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.service import client_of, service
from tests.support.tenants import Caller

TEA = "She drinks green tea."


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


@pytest.mark.parametrize(
    ("before", "after"),
    [("I live in Berlin.", "I moved to Munich."), ("我住在北京。", "我搬到上海了。")],
)
async def test_what_contradicts_a_memory_takes_its_place(
    client: AsyncClient, before: str, after: str
) -> None:
    for said in (before, after):
        ok(await client.post("/memories", json={"messages": said, "user_id": "ana"}), 201)

    for mode in ("semantic", "lexical", "hybrid"):
        found = await texts(client, f"{before} {after}", mode=mode)
        assert len(found) == 1
        assert ("Munich" in found[0]) or ("上海" in found[0])


@pytest.mark.parametrize("on_duplicate", ["reject", "return", "supersede", "allow"])
async def test_the_same_text_twice_is_there_once_and_not_gone(
    client: AsyncClient, on_duplicate: str
) -> None:
    first = await save(client, TEA)

    again = await save(client, TEA, on_duplicate=on_duplicate)

    assert (again["event"], again["memory_id"]) == ("NONE", first["memory_id"])
    assert await texts(client, "green tea") == [TEA]


async def test_after_a_change_of_model_old_and_new_are_found_by_meaning(
    client: AsyncClient, acme: Caller, dsn: str, provider: OpenAIServer
) -> None:
    """Its vectors are of another length."""
    await save(client, TEA)
    cat = "The cat sleeps on the sofa."

    async with (
        service(
            dsn,
            openai_base_url=provider.base_url,
            embedding_model="openai/alpha",
            embedding_dim=64,
        ) as app,
        client_of(app, acme.key) as changed,
    ):
        await save(changed, cat)
        for mode in ("semantic", "hybrid"):
            for text in (TEA, cat):
                answer = await search(changed, text, user_id="ana", mode=mode)
                assert (answer["waiting"], answer["degraded"]) == (0, False)
                assert len(answer["results"]) == 2
                best = answer["results"][0]
                assert best["content"] == text
                assert best["similarity"] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
async def test_of_equal_memories_the_newest_comes_first(client: AsyncClient, mode: str) -> None:
    said = [f"Locker number {n} is red." for n in range(4)]
    for text in said:
        await save(client, text, on_duplicate="allow")

    found = await texts(client, "red", mode=mode, boosts={"dense_latin": 0})

    assert found == said[::-1]
