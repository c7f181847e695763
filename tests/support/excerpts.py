"""Excerpts of a context, in the words of a client."""

from typing import Any

from httpx import AsyncClient

from tests.support.api import ok


async def opened(client: AsyncClient, session_id: str = "s1", **fields: Any) -> None:
    """A session of Ana's in which nothing was said, unless `fields` say otherwise."""
    body = {"session_id": session_id, "user_id": "ana"} | fields
    ok(await client.post("/sessions", json=body), 201)


async def context(client: AsyncClient, session_id: str = "s1", **body: Any) -> dict[str, Any]:
    return ok(await client.post(f"/sessions/{session_id}/context", json=body))


def part(answer: dict[str, Any], name: str = "excerpts") -> dict[str, Any]:
    return next(each for each in answer["parts"] if each["name"] == name)


def excerpt_lines(answer: dict[str, Any]) -> list[str]:
    """The lines of the block of excerpts, without its tags and its header; empty for no block."""
    _, found, rest = answer["prompt"].partition("\nPieces of what was said before")
    return rest.split("\n</memory>")[0].splitlines()[1:] if found else []


def said(role: str, content: str, **rest: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | rest


def said_at(moment: str, role: str, content: str, **rest: Any) -> dict[str, Any]:
    """A message that the client says was said then."""
    return said(role, content, metadata={"client_time": moment}, **rest)


def shown_numbers(answer: dict[str, Any]) -> list[tuple[str, int]]:
    """Session and number of each message of which pieces are shown, in their order."""
    return [(each["session_id"], each["sequence_no"]) for each in answer["used_excerpts"]]
