"""Two times: when something held, and while we thought so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.memory.graph.statements import WriteResult
from app.runtime import Runtime
from tests.support.api import ok
from tests.support.graph import known, people, said, state, triples, write
from tests.support.tenants import Caller


def day(month: int, number: int = 1) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


@pytest.fixture(autouse=True)
async def _ana(client: AsyncClient) -> None:
    await people(client, "ana")


async def homes(client: AsyncClient, **params: Any) -> set[str]:
    shown = {name: moment.isoformat() for name, moment in params.items()}
    return {place for _, relation, place in await known(client, **shown) if relation == "lives_in"}


class TestTwoTimes:
    async def test_relation_is_read_at_one_time_as_known_at_another(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        """The issue's own question, after two corrections."""
        bonn = said("Ana", "lives_in", "Bonn", valid_from=day(1), single=True)
        await write(runtime, acme.tenant_id, [bonn], now=day(2))
        # In the middle of June we learn that she moved in April.
        koeln = said("Ana", "lives_in", "Köln", valid_from=day(4), single=True)
        await write(runtime, acme.tenant_id, [koeln], now=day(6, 15))
        # Today somebody says that it was not Köln but Mainz.
        [row] = [
            one
            for one in ok(await client.get("/graph/relations"))["items"]
            if one["destination"]["name"] == "Köln"
        ]
        ok(
            await client.patch(
                f"/graph/relations/{row['relation_id']}", json={"destination": "Mainz"}
            )
        )

        may = day(5, 10)
        assert await homes(client, as_of=may, known_at=day(6, 1)) == {"Bonn"}
        assert await homes(client, as_of=may, known_at=day(6, 20)) == {"Köln"}
        assert await homes(client, as_of=may) == {"Mainz"}
        assert await homes(client, as_of=day(3)) == {"Bonn"}
        assert await homes(client, known_at=day(6, 1)) == {"Bonn"}
        assert await homes(client, known_at=day(1)) == set()
        near = ok(
            await client.get(
                "/graph/neighbours",
                params={"name": "Ana", "user_id": "ana"}
                | {"as_of": may.isoformat(), "known_at": day(6).isoformat()},
            )
        )
        assert triples(near["relations"]) == {("Ana", "lives_in", "Bonn")}

    async def test_end_of_a_period_begins_the_next(self, client: AsyncClient) -> None:
        await state(client, "Ana", "lives_in", "Bonn", valid_from="2026-01-01T00:00:00Z")
        await state(
            client, "Ana", "lives_in", "Köln", valid_from="2026-04-01T00:00:00Z", single=True
        )

        assert await homes(client, as_of=day(4) - timedelta(microseconds=1)) == {"Bonn"}
        assert await homes(client, as_of=day(4)) == {"Köln"}
        assert await homes(client, as_of=day(1) - timedelta(microseconds=1)) == set()

    async def test_late_knowledge_does_not_end_what_holds(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        """Out of order, as an import is."""
        now = said("Ana", "lives_in", "Köln", valid_from=day(6), single=True)
        then = said("Ana", "lives_in", "Bonn", valid_from=day(1), single=True)

        await write(runtime, acme.tenant_id, [now, then], now=day(7))

        assert await homes(client, as_of=day(3)) == {"Bonn"}
        assert await homes(client, as_of=day(8)) == {"Köln"}

    async def test_value_ends_when_the_next_one_was_said(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        """Read in summer, said in winter: neither says since when."""
        bonn = said("Ana", "lives_in", "Bonn", said_at=day(1), single=True)
        koeln = said("Ana", "lives_in", "Köln", said_at=day(2), single=True)
        left = said("Ana", "lives_in", "Köln", said_at=day(3), retracts=True)

        await write(runtime, acme.tenant_id, [bonn, koeln, left], now=day(7))

        assert await homes(client, as_of=day(2) - timedelta(microseconds=1)) == {"Bonn"}
        assert await homes(client, as_of=day(2)) == {"Köln"}
        assert await homes(client, as_of=day(3)) == set()

    async def test_nothing_ends_ahead(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        bonn = said("Ana", "lives_in", "Bonn", single=True)
        koeln = said("Ana", "lives_in", "Köln", said_at=day(9), single=True)

        await write(runtime, acme.tenant_id, [bonn, koeln], now=day(7))

        assert await homes(client, as_of=day(7)) == {"Köln"}

    async def test_bounded_period_ends_no_open_relation(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        home = said("Ana", "lives_in", "Bonn", valid_from=day(1), single=True)
        stay = said("Ana", "lives_in", "Oslo", valid_from=day(2), valid_to=day(3), single=True)

        await write(runtime, acme.tenant_id, [home, stay], now=day(7))

        assert await homes(client) == {"Bonn"}

    async def test_retracted_relation_ends_without_successor(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        tea, rice = (said("Ana", "likes", one) for one in ("tea", "rice"))
        no_tea = said("Ana", "likes", "tea", retracts=True)
        no_fish = said("Ana", "likes", "fish", retracts=True)
        await write(runtime, acme.tenant_id, [tea, rice], now=day(1))

        written = await write(runtime, acme.tenant_id, [no_tea, no_fish], now=day(2))

        assert written == WriteResult(entities_matched=2, relations_closed=1)
        assert await known(client) == {("Ana", "likes", "rice")}
        entities = ok(await client.get("/graph/entities"))["items"]
        assert {one["name"] for one in entities} == {"Ana", "tea", "rice"}

    async def test_relation_that_begins_again_is_a_new_one(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        first = said("Ana", "works_at", "Acme", valid_from=day(1), valid_to=day(2))
        again = said("Ana", "works_at", "Acme", valid_from=day(5))

        written = await write(runtime, acme.tenant_id, [first, again], now=day(6))

        assert written.relations_added == 2
        assert await known(client) == {("Ana", "works_at", "Acme")}


class TestConfirming:
    async def test_repeated_statement_is_stored_once(
        self, runtime: Runtime, acme: Caller, client: AsyncClient
    ) -> None:
        statements = [said("李明", "studies_at", "北京大学", evidence=("m1",))]
        first = await write(runtime, acme.tenant_id, statements, now=day(1))
        again = await write(runtime, acme.tenant_id, statements, now=day(2))

        assert first == WriteResult(entities_created=2, relations_added=1)
        assert again == WriteResult(entities_matched=2, relations_confirmed=1)
        [row] = ok(await client.get("/graph/relations"))["items"]
        assert row["version"] == 1

    async def test_invalid_statement_is_left_out(self, runtime: Runtime, acme: Caller) -> None:
        wrong = [
            said("", "likes", "tea"),
            said("Ana", "喜欢", "tea"),
            said("Ana", "likes", "x" * 256),
            said("Ana", "likes", "rice", valid_from=day(2), valid_to=day(1)),
            said("Ana", "is", "ANA"),
        ]

        written = await write(runtime, acme.tenant_id, wrong, now=day(1))

        assert written == WriteResult(entities_created=1)
