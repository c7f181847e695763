"""A table that runs as one item is as strict as its cases, and names those that fail."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.case_tables import are_single, cases_of, table_item


class Samples:
    seen: int = 0

    @pytest.mark.parametrize("size", [1, 2])
    @pytest.mark.parametrize("name, color", [("a", "red"), ("b", "blue")], ids=["first", "second"])  # noqa: PT006
    def test_some_fail(self, name: str, color: str, size: int) -> None:
        if color == "blue":
            assert size == 1
        if (name, size) == ("a", 2):
            pytest.fail("too large")

    @pytest.mark.parametrize("number", range(3))
    async def test_last_skips(self, number: int) -> None:
        if number == 2:
            pytest.skip("never seen")

    @pytest.mark.parametrize("number", [1, 2])
    def test_starts_anew(self, number: int) -> None:
        self.seen += 1
        assert self.seen == 1


def sample(request: pytest.FixtureRequest, test: str) -> pytest.Function:
    samples: pytest.Collector = pytest.Class.from_parent(
        request.node.getparent(pytest.Module), name="Samples", obj=Samples
    )
    item = table_item(samples, test, getattr(Samples, test))
    assert isinstance(item, pytest.Function)
    return item


def test_every_case_runs_and_each_that_fails_is_named(request: pytest.FixtureRequest) -> None:
    with pytest.raises(BaseExceptionGroup) as raised:
        sample(request, "test_some_fail").obj()

    names = ["test_some_fail[first-2]", "test_some_fail[second-2]"]
    assert raised.value.message == "2 of 4 cases failed: " + ", ".join(names)
    notes = [error.__notes__ for error in raised.value.exceptions]
    assert notes == [[f"in {name}"] for name in names]


async def test_async_cases_are_awaited_and_none_skips_itself(
    request: pytest.FixtureRequest,
) -> None:
    with pytest.raises(BaseExceptionGroup, match=r"1 of 3 cases failed: test_last_skips\[2\]"):
        await sample(request, "test_last_skips").obj()


class Prepared:
    def setup_method(self) -> None: ...

    @pytest.mark.parametrize("number", [1, 2])
    def test_with_preparation(self, number: int) -> None: ...


class Fixed:
    @pytest.fixture(autouse=True)
    def prepare(self) -> None: ...

    @pytest.mark.parametrize("number", [1, 2])
    def test_with_preparation(self, number: int) -> None: ...


@pytest.mark.parametrize("prepared", [Prepared, Fixed])
def test_cases_that_something_prepares_are_left_to_pytest(
    request: pytest.FixtureRequest, prepared: type
) -> None:
    samples: pytest.Collector = pytest.Class.from_parent(
        request.node.getparent(pytest.Module), name=prepared.__name__, obj=prepared
    )
    name = "test_with_preparation"

    assert table_item(samples, name, getattr(prepared, name)) is None


def test_each_case_has_an_instance_of_its_class(request: pytest.FixtureRequest) -> None:
    sample(request, "test_starts_anew").obj()


def test_what_needs_more_than_arguments_is_left_to_pytest() -> None:
    def cases(*marks: Any, takes: str = "number") -> int:
        names: dict[str, Any] = {}
        exec(f"def test({takes}): ...", names)
        test = names["test"]
        for mark in marks:
            test = mark(test)
        return len(cases_of(test))

    rows = partial(pytest.mark.parametrize, "number")
    assert cases(rows([1, 2])) == 2
    assert cases() == 0
    assert cases(rows([1, 2]), takes="number, tmp_path") == 0
    assert cases(rows([1, 2]), pytest.mark.slow) == 0
    assert cases(rows([1, 2], indirect=True)) == 0
    assert cases(rows([1, pytest.param(2)])) == 0
    assert cases(rows(iter([1, 2]))) == 0
    assert cases(rows([])) == 0
    assert cases(given(other=st.integers()), rows([1, 2]), takes="number, other") == 0


def test_whoever_asks_for_cases_gets_cases() -> None:
    def asked(args: str = "tests/unit", **options: object) -> bool:
        none = {"keyword": "", "deselect": None, "collectonly": False, "usepdb": False}
        config: Any = SimpleNamespace(args=[args], option=SimpleNamespace(**(none | options)))
        return are_single(config)

    assert not asked()
    assert asked("tests/unit/test_gate.py::test_length[3]")
    assert asked(keyword="length")
    assert asked(deselect=["tests/unit/test_gate.py::test_length[3]"])
    assert asked(collectonly=True)
    assert asked(usepdb=True)
