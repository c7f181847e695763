"""Former names of methods: they warn, and do what the new names do."""

import inspect

import pytest

import kemem
from kemem import AsyncMemory, Memory
from tests.support.either_client import ask
from tests.support.flaky_server import says

PAGE = {"items": [], "next_cursor": None}

OF_MEMORY = [
    ("write", "add", ("Tea.",), {"results": []}),
    ("retrieve", "search", ("tea?",), {"results": []}),
    ("forget", "delete", ("mem_1",), None),
    ("compact", "summarize", ("s1",), {"session_id": "s1"}),
]
OF_GROUPS = [
    ("blocks", "list_blocks"),
    ("folders", "list_folders"),
    ("projects", "list_projects"),
    ("erasures", "list_erasures"),
]


def requested(server) -> list[tuple[str, str, bytes]]:
    return [(request.method, request.path, request.body) for request in server.requests]


@pytest.mark.parametrize(("old", "new", "arguments", "answer"), OF_MEMORY)
async def test_former_name_of_a_memory_method_works(
    server, memory, old, new, arguments, answer
) -> None:
    server.otherwise = says(answer)

    with pytest.warns(DeprecationWarning, match=rf"{old}\(\) is deprecated: use {new}\(\)") as seen:
        before = await ask(getattr(memory, old), *arguments)
    after = await ask(getattr(memory, new), *arguments)

    assert before == after
    first, second = requested(server)
    assert first == second
    assert seen[0].filename.endswith("either_client.py")


@pytest.mark.parametrize(("group", "new"), OF_GROUPS)
async def test_former_name_of_a_list_method_works(server, memory, group, new) -> None:
    server.otherwise = says(PAGE)
    methods = getattr(memory, group)

    with pytest.warns(DeprecationWarning, match=rf"list\(\) is deprecated: use {new}\(\)"):
        await ask(methods.list, limit=7)
    await ask(getattr(methods, new), limit=7)

    first, second = requested(server)
    assert first == second
    assert "limit=7" in first[1]


async def test_results_of_former_names_are_awaited(server) -> None:
    server.otherwise = says({"results": []})
    async with AsyncMemory(server.address, "kem_x") as memory:
        with pytest.warns(DeprecationWarning, match="use search"):
            pending = memory.retrieve("tea?", user_id="ana")
        assert inspect.isawaitable(pending)
        assert len(await pending) == 0


async def test_former_name_of_a_field_has_its_value(server, memory) -> None:
    server.otherwise = says({"results": [], "extraction_id": "run_1", "run_id": "run_1"})
    added = await ask(memory.add, "Tea.")

    with pytest.warns(DeprecationWarning, match="run_id is deprecated: use extraction_id") as seen:
        assert added.run_id == added.extraction_id == "run_1"

    assert seen[0].filename == __file__
    assert "use `extraction_id`" in inspect.getdoc(kemem.Added.run_id)


def test_docstrings_name_the_new_method() -> None:
    for kind in (Memory, AsyncMemory):
        for old, new, _, _ in OF_MEMORY:
            assert f"use `{new}`" in inspect.getdoc(getattr(kind, old))
    for kind in (kemem.Blocks, kemem.AsyncBlocks):
        assert "use `list_blocks`" in inspect.getdoc(kind.list)
