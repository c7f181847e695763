"""How a chat model answers in tests: well, badly, and not at all. See `openai_server`.

A behaviour that reads what it was given (`extracts`, `decides`) finds the lines of the prompt
by their words, so that tests need not know the short ids in it.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.openai_server import Answer, Behaviour, Request, completion, failed
from tests.support.patience import PATIENCE

Line = Mapping[str, Any]


def system_of(request: Request) -> str:
    return request.body["messages"][0]["content"]


def lines_of(request: Request, *kinds: str) -> list[Line]:
    """The data a request carries, of these kinds or all."""
    lines = [json.loads(line) for line in request.body["messages"][-1]["content"].split("\n")]
    return [line for line in lines if not kinds or line["kind"] in kinds]


def schema_name_of(request: Request) -> str | None:
    """Which question it is: `memories`, `experience`, `decisions`, `summary` or `profile`; None
    without a schema.
    """
    return request.body.get("response_format", {}).get("json_schema", {}).get("name")


def entry(content: Any, /, *evidence: str, **members: Any) -> dict[str, Any]:
    """A complete entry of an extraction; `members` replace the usual ones."""
    usual = {
        "content": content,
        "type": "fact",
        "confidence": 0.95,
        "evidence": list(evidence),
        "attribute": None,
        "valid_from": None,
        "valid_to": None,
        "due": None,
        "source_error": None,
        "retracts": False,
        "relations": [],
    }
    return {**usual, **members}


def writes(text: str | None, **members: Any) -> Behaviour:
    """Answers with this text; members as of `completion`."""

    async def behave(_: Request) -> Answer:
        return completion(text, **members)

    return behave


def says(data: Any, **members: Any) -> Behaviour:
    """Answers with this value as JSON."""
    return writes(json.dumps(data, ensure_ascii=False), **members)


def remembers(*entries: Any, **members: Any) -> Behaviour:
    """Answers an extraction with these entries."""
    return says({"reflection": "Something was said.", "memories": list(entries)}, **members)


def extracts(entries_of: Callable[[list[Line]], Sequence[Mapping[str, Any]]]) -> Behaviour:
    """Answers an extraction with what `entries_of` makes of its new messages."""

    async def behave(request: Request) -> Answer:
        entries = entries_of(lines_of(request, "message"))
        return completion(json.dumps({"reflection": "", "memories": list(entries)}))

    return behave


def decides(decision_of: Callable[[Line, list[Line]], Mapping[str, Any]]) -> Behaviour:
    """Answers a reconciliation: `decision_of` gets a statement that something is near to, and the
    memories and earlier statements that are.
    """

    async def behave(request: Request) -> Answer:
        shown = {one["id"]: one for one in lines_of(request, "memory", "statement")}
        decisions = [
            {
                "statement": statement["id"],
                "reason": "Because.",
                "memories": [],
                "content": None,
                **decision_of(statement, [shown[name] for name in statement["near"]]),
            }
            for statement in lines_of(request, "statement")
            if "near" in statement
        ]
        return completion(json.dumps({"decisions": decisions}, ensure_ascii=False))

    return behave


def summarises(text: Any) -> Behaviour:
    """Answers a summary with this text."""
    return says({"summary": text})


def by_question(**behaviours: Behaviour) -> Behaviour:
    """One behaviour per question: `memories`, `experience`, `decisions`, `summary`, `profile`.

    What memories tell of a profile is asked after every change; where a test is about something
    else, the answer is that they tell nothing.
    """
    chosen = {"profile": says({"values": []})} | behaviours

    async def behave(request: Request) -> Answer:
        return await chosen[schema_name_of(request) or ""](request)

    return behave


def slowly(seconds: float, then: Behaviour) -> Behaviour:
    async def behave(request: Request) -> Answer:
        await asyncio.sleep(seconds)
        return await then(request)

    return behave


def held(release: threading.Event, then: Behaviour) -> Behaviour:
    """Answers when the test says so, which stops a job while its model thinks."""

    async def behave(request: Request) -> Answer:
        await asyncio.to_thread(release.wait, PATIENCE)
        return await then(request)

    return behave


def cut_off(text: str) -> Behaviour:
    return writes(text, finish_reason="length")


async def declines(_: Request) -> Answer:
    return completion(None, refusal="I cannot help with my diary.")


async def filtered(_: Request) -> Answer:
    return completion("", finish_reason="content_filter")


async def empty(_: Request) -> Answer:
    return completion("")


def without_schemas(then: Behaviour) -> Behaviour:
    """An endpoint that knows JSON, and no schema for it."""

    async def behave(request: Request) -> Answer:
        if request.body.get("response_format", {}).get("type") == "json_schema":
            return failed(400, "This response_format type is unavailable now", "bad_request")
        return await then(request)

    return behave


def without_json(then: Behaviour, status: int = 422) -> Behaviour:
    """An endpoint that answers in text alone."""

    async def behave(request: Request) -> Answer:
        if "response_format" in request.body:
            return failed(status, "structured output is not supported", "bad_request")
        return await then(request)

    return behave


def without_parameter(name: str, then: Behaviour) -> Behaviour:
    """An endpoint that refuses one parameter by name, as newer models do."""

    async def behave(request: Request) -> Answer:
        if name in request.body:
            error = {"message": f"Unsupported parameter: '{name}'", "param": name, "code": "x"}
            return Answer.of({"error": error}, 400)
        return await then(request)

    return behave
