"""`processors`: what is asked, what is read of it, and that it is what the service says."""

import dataclasses

import kemem
from app.identity.agents.schemas import ProcessorList, ProcessorRead
from tests.support.either_client import ask
from tests.support.flaky_server import says

TRIM = {
    "name": "trim", "points": ["before_append", "after_search"], "timeout_seconds": 0.5,
    "on_error": "refuse",
}  # fmt: skip


async def test_processors_are_listed_in_their_order(server, memory) -> None:
    other = TRIM | {"name": "mask", "points": [], "on_error": "skip"}
    server.otherwise = says({"items": [TRIM, other]})

    answer = await ask(memory.processors)

    [request] = server.requests
    assert (request.method, request.path, request.body) == ("GET", "/v1/processors", b"")
    assert [one.name for one in answer] == ["trim", "mask"]
    assert answer[0].points == ("before_append", "after_search")
    assert (answer[0].timeout_seconds, answer[0].on_error) == (0.5, "refuse")
    assert str(answer[0]) == "trim: before_append, after_search"


def test_processor_has_the_fields_of_the_service() -> None:
    fields = {one.name for one in dataclasses.fields(kemem.Processor)} - {"raw"}

    assert fields == set(ProcessorRead.model_fields)
    assert kemem.Processors.rows_key in ProcessorList.model_fields
