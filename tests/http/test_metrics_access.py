"""/metrics: who may read it, and how much it is."""

import pytest
from httpx import AsyncClient

from tests.support.api import ok, problem
from tests.support.service import client_of, service

LOCAL, REMOTE = "http://127.0.0.1/metrics", "http://10.1.2.3/metrics"


async def test_without_a_token_only_a_loopback_address_answers(client: AsyncClient) -> None:
    assert "kemem_requests_total" in (await client.get(LOCAL)).text
    assert (await client.get("http://[::1]/metrics")).status_code == 200

    refused = problem(await client.get(REMOTE), 401, "unknown_metrics_token")
    assert "MEMORY_METRICS_TOKEN" in refused["detail"]


@pytest.mark.parametrize(
    "header",
    [("X-Forwarded-For", "10.1.2.3"), ("Forwarded", "for=10.1.2.3"), ("Via", "1.1 edge")],
    ids=str,
)
async def test_without_a_token_nothing_is_shown_through_a_proxy_on_this_machine(
    client: AsyncClient, header: tuple[str, str]
) -> None:
    problem(await client.get(LOCAL, headers=[header]), 401, "unknown_metrics_token")


async def test_with_a_token_every_address_answers_who_sends_it(dsn: str) -> None:
    async with service(dsn, metrics_token="prometheus") as app, client_of(app, None) as scraper:
        for address in (LOCAL, REMOTE):
            problem(await scraper.get(address), 401, "unknown_metrics_token")
            wrong = {"Authorization": "Bearer prometheu"}
            problem(await scraper.get(address, headers=wrong), 401, "unknown_metrics_token")
            right = {"Authorization": "Bearer prometheus", "X-Forwarded-For": "10.1.2.3"}
            assert (await scraper.get(address, headers=right)).status_code == 200


async def test_a_route_has_few_lines(client: AsyncClient) -> None:
    ok(await client.get("/users"))

    lines = (await client.get(LOCAL)).text.splitlines()

    of_route = [line for line in lines if 'method="GET",route="/v1/users"' in line]
    timed = [line for line in of_route if line.startswith("kemem_request_seconds")]
    # 12 for each of some 190 routes are 200 kB.
    assert 0 < len(timed) <= 12
    assert not [line for line in lines if line.startswith("kemem_") and "_created" in line]
