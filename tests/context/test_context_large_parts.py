"""Large images in a window: behind the limit of bytes they become names, and no text is lost."""

import base64
import os
from typing import Any

import pytest
from httpx import AsyncClient

from app.conversation.messages.window_sql import MOST_BYTES, SMALL_PARTS
from tests.support.api import append, ok

BARE = {"memories": False, "excerpts": False, "profile": False}


def image(size: int) -> dict[str, Any]:
    data = base64.b64encode(os.urandom(size)).decode()[:size]
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def shows(number: int, size: int) -> dict[str, Any]:
    parts = [{"type": "text", "text": f"Picture {number}."}, image(size)]
    return {"message_id": f"m{number}", "role": "user", "content": parts}


async def context(client: AsyncClient) -> dict[str, Any]:
    body = {"include": BARE, "window_tokens": 50_000}
    return ok(await client.post("/sessions/s/context", json=body))


def said(answer: dict[str, Any]) -> list[Any]:
    return [one["content"] for one in answer["messages"] if one["role"] == "user"]


def name(number: int) -> str:
    return f"Picture {number}.\n[image, png]\n[parts of message m{number}]"


async def test_older_images_become_names_and_every_text_stays(client: AsyncClient) -> None:
    await append(client, "s", "Before all of it.")
    for number in range(4):
        await append(client, "s", shows(number, 1_900_000))
        await append(client, "s", {"role": "assistant", "content": f"I see {number}."})

    answer = await context(client)

    first, oldest, *others = said(answer)
    assert (first, oldest) == ("Before all of it.", name(0))
    assert [[part["type"] for part in one] for one in others] == 3 * [["text", "image_url"]]
    assert answer["window"]["left_out"] == 0
    [shortened] = answer["window"]["shortened"]
    assert (shortened["message_id"], shortened["form"]) == ("m0", "cut")
    assert shortened["tokens"] < shortened["whole_tokens"]


@pytest.mark.parametrize(
    ("older", "newer", "whole"),
    [
        (SMALL_PARTS + 1, MOST_BYTES - 1_000, True),
        (SMALL_PARTS + 1, MOST_BYTES, False),
        # So small a part is read in any case.
        (SMALL_PARTS - 1_000, MOST_BYTES, True),
    ],
)
async def test_the_limits_of_bytes(
    client: AsyncClient, older: int, newer: int, whole: bool
) -> None:
    await append(client, "s", shows(0, older))
    for number, size in enumerate([1_900_000, 1_900_000, newer - 3_800_000], start=1):
        await append(client, "s", shows(number, size))

    answer = await context(client)

    assert (said(answer)[0] != name(0)) == whole
    assert isinstance(said(answer)[1], list)


async def test_the_current_request_keeps_its_image(client: AsyncClient) -> None:
    """However much its turn has brought since."""
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "shot"}} for n in range(4)]
    await append(client, "s", shows(0, 100_000))
    for number, call in enumerate(calls):
        result = {"role": "tool", "tool_call_id": call["id"]}
        await append(
            client,
            "s",
            {"role": "assistant", "content": "", "tool_calls": [call]},
            result | {"message_id": f"r{number}", "content": shows(1, 1_900_000)["content"]},
        )

    answer = await context(client)

    assert [part["type"] for part in said(answer)[0]] == ["text", "image_url"]
    assert answer["window"]["left_out"] == 0
    results = [one["content"] for one in answer["messages"] if one["role"] == "tool"]
    assert str(results[0]).endswith("[parts of message r0]")
