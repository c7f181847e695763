"""Erasures that meet appends; each needs connections of its own, so commits are real."""

import asyncio

import pytest
from httpx import AsyncClient, Response

from tests.support.api import append

ERASURES = 6
APPENDS = 12


@pytest.mark.parametrize("sessions", [1, 4])
async def test_erasing_an_active_person_hinders_nobody(client: AsyncClient, sessions: int) -> None:
    for turn in range(ERASURES):
        for number in range(sessions):
            await append(client, f"s{number}", "Begin.", user_id="zoe")

        async def speak(number: int) -> Response:
            body = {"user_id": "zoe", "messages": [{"role": "user", "content": f"{number}"}]}
            return await client.post(f"/sessions/s{number % sessions}/messages", json=body)

        async def erase(turn: int = turn) -> Response:
            await asyncio.sleep(0.004 * turn)
            return await client.delete("/users/zoe", params={"confirm": True})

        erased, *said = await asyncio.gather(erase(), *(speak(n) for n in range(APPENDS)))

        assert erased.status_code == 200, erased.text
        assert {response.status_code for response in said} <= {201, 404, 409}


async def test_erasing_an_active_agent_hinders_nobody(client: AsyncClient) -> None:
    for turn in range(ERASURES):
        await append(client, "home", "Begin.")
        await append(client, f"s{turn}", "Begin.", agent_id="coach")

        async def speak(number: int, turn: int = turn) -> Response:
            body = {"messages": [{"role": "user", "content": f"{number}"}]}
            return await client.post(f"/sessions/s{turn}/messages", json=body)

        said = (speak(number) for number in range(APPENDS))
        erasure = client.delete("/agents/coach", params={"confirm": True})
        erased, *answers = await asyncio.gather(erasure, *said)

        assert erased.status_code == 200, erased.text
        assert {response.status_code for response in answers} <= {201, 404, 422}
