"""The sync client is what `make client` generates from the async one, and reads like it."""

import inspect
from pathlib import Path

import pytest

import kemem
from kemem import AsyncMemory, Memory
from scripts.generate_client import TARGET, generate

PAIRS = [
    (getattr(kemem, name.removeprefix("Async")), getattr(kemem, name))
    for name in kemem.__all__
    if name.startswith("Async")
]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.py")}


def public(kind: type) -> dict[str, object]:
    return {name: member for name, member in vars(kind).items() if not name.startswith("_")}


def methods(kind: type) -> dict[str, object]:
    """Public methods and properties, inherited ones included."""
    bases = [base for base in reversed(kind.__mro__) if base.__module__.startswith("kemem.")]
    current = [base for base in bases if base.__module__ != "kemem.deprecated"]
    return {name: member for base in current for name, member in public(base).items()}


def test_sync_client_equals_the_generated_one(tmp_path) -> None:
    generate(tmp_path / "kemem")

    assert files(TARGET) == files(tmp_path / "kemem"), "run `make client`"


def test_generated_code_does_not_mention_async() -> None:
    for name, content in files(TARGET).items():
        body = content.decode().split("\n", 1)[1]
        for word in ("await", "Async", "asyncio", "aclose", "event loop", "async with"):
            assert word not in body, f"{name}: {word}"


def test_client_and_each_group_of_methods_exist_in_both_kinds() -> None:
    names = {sync.__name__ for sync, _ in PAIRS}

    assert names == {
        "Memory", "Blocks", "Erasures", "Folders", "Forgetting", "Graph", "Profiles", "Projects",
        "Statistics",
    }  # fmt: skip


@pytest.mark.parametrize(("sync", "unsync"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_clients_have_the_same_methods_with_the_same_parameters(sync, unsync) -> None:
    here, there = methods(sync), methods(unsync)

    assert here.keys() == there.keys()
    for name, method in here.items():
        if isinstance(method, property) or name == "acting_as":
            continue
        other = there[name]
        ours, theirs = inspect.signature(method), inspect.signature(other)
        assert ours.parameters == theirs.parameters, name
        answer = str(ours.return_annotation).replace(".Iterator", ".AsyncIterator")
        assert str(theirs.return_annotation) == answer, name
        assert not inspect.iscoroutinefunction(method), name
        assert inspect.iscoroutinefunction(other) or inspect.isasyncgenfunction(other), name


@pytest.mark.parametrize("kind", [kind for pair in PAIRS for kind in pair])
def test_every_public_method_has_a_docstring(kind) -> None:
    assert inspect.getdoc(kind)
    for name, member in methods(kind).items():
        assert inspect.getdoc(member), name


def test_number_of_methods_is_known() -> None:
    """A method that gets lost in a move is noticed."""
    assert len(methods(Memory)) == len(methods(AsyncMemory)) == 64
