"""A bucket holds so many extracted memories; the weakest beyond that are archived."""

from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient

from app.memory.extraction.decisions import MOST_REMOVALS
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.api import every_page, ok, save
from tests.support.chat_behaviours import entry, extracts
from tests.support.databases import served
from tests.support.model_service import app_of
from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.service import client_of
from tests.support.tenants import make_tenant

CAP = 10
SLOW = pytest.mark.slow
ANIMALS = [
    "horse", "donkey", "parrot", "hamster", "goldfish", "tortoise",
    "rabbit", "lizard", "budgie", "ferret", "gecko", "newt",
]  # fmt: skip


@pytest.fixture(scope="module")
def running_server():
    with openai_server() as server:
        yield server


@pytest.fixture
def chat(running_server: OpenAIServer):
    running_server.reset()
    return running_server.chat


@pytest.fixture(scope="module")
async def capped(dsn: str, running_server: OpenAIServer) -> AsyncIterator[Runtime]:
    settings = Settings(
        _env_file=None,
        max_facts=CAP,
        openai_base_url=running_server.base_url,
        openai_api_key="key",
        extraction_model="openai/reader",
    )
    async with open_runtime(settings, served(dsn)) as runtime:
        yield runtime


@pytest.fixture
async def client(capped: Runtime) -> AsyncIterator[AsyncClient]:
    owner = await make_tenant(capped)
    async with app_of(capped) as application, client_of(application, owner.key) as opened:
        yield opened


async def infer(client: AsyncClient, chat, *statements: tuple[str, float, str]) -> list[dict]:
    """Let the model propose these; each brings its own decision ADD when it is asked."""
    chat.script(
        extracts(
            lambda found: [
                entry(text, found[0]["id"], confidence=confidence, type=memory_type)
                for text, confidence, memory_type in statements
            ]
        )
    )
    response = await client.post("/memories", json={"messages": "Well.", "user_id": "ana"})
    assert response.status_code in {200, 201}, response.text
    return response.json()["results"]


def facts(count: int, start: int = 0) -> list[tuple[str, float, str]]:
    """Statements about different things, each a little surer than the one before."""
    return [
        (f"{ANIMALS[number].capitalize()}.....", 0.71 + number / 100, "fact")
        for number in range(start, start + count)
    ]


async def active(client: AsyncClient) -> int:
    return len(await every_page(client, "/memories", user_id="ana"))


@pytest.mark.parametrize("count", [pytest.param(CAP - 1, marks=SLOW), CAP, CAP + 1])
async def test_the_weakest_beyond_the_cap_is_archived(client, chat, count):
    outcomes = await infer(client, chat, *facts(count))

    assert await active(client) == min(count, CAP)
    rejected = [one for one in outcomes if one["event"] == "REJECT"]
    assert [one["index"] for one in rejected] == ([0] if count > CAP else [])
    for one in rejected:
        assert [reason["code"] for reason in one["reasons"]] == ["over_capacity"]
        history = await every_page(client, f"/memories/{one['memory_id']}/history")
        assert [line["event"] for line in history] == ["ADD", "ARCHIVE"]


async def test_a_stronger_newcomer_drives_the_weakest_out(client, chat):
    first = await infer(client, chat, *facts(CAP))
    [outcome] = await infer(client, chat, ("An octopus.....", 1.0, "fact"))

    assert outcome["event"] == "ADD"
    assert await active(client) == CAP
    weakest = ok(await client.get(f"/memories/{first[0]['memory_id']}"))
    assert weakest["status"] == "archived"


async def test_corrections_and_what_a_person_saved_are_neither_counted_nor_archived(client, chat):
    await infer(client, chat, *facts(CAP), ("Mended.....", 0.7, "correction"))
    await save(client, "Saved by hand, with great care.", confidence=0.7)

    assert await active(client) == CAP + 2


@pytest.mark.parametrize(
    "more",
    [*(pytest.param(n, marks=SLOW) for n in (MOST_REMOVALS - 1, MOST_REMOVALS, 15)),
     MOST_REMOVALS + 1],
)  # fmt: skip
async def test_a_run_that_adds_many_leaves_no_more_than_the_cap(client, chat, more):
    letters = "abcdefghijklmnopqrstuvwxyz"
    many = [(f"{letters[n]}{n * 7919}.....", 0.9, "fact") for n in range(CAP + more)]

    outcomes = await infer(client, chat, *many)

    assert await active(client) == CAP
    assert [one["event"] for one in outcomes].count("REJECT") == more
