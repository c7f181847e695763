"""The cases of a parametrised test as one item, where nothing but their arguments makes them.

An item costs pytest 3 ms, more than most cases of tables take. Whoever selects, lists or debugs
cases gets each as an item of its own.
"""

import inspect
import itertools
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final

import pytest
from _pytest.fixtures import FixtureFunctionDefinition

_PARAM: Final = type(pytest.param())
_listed: Final[set[object]] = set()
"""Tests whose cases are made items, which tell the names of failed ones."""


def are_single(config: pytest.Config) -> bool:
    """Whether somebody asked for cases, and not for tests."""
    option = config.option
    selects = option.keyword or option.deselect or any("::" in arg for arg in config.args)
    return bool(selects or option.collectonly or option.usepdb)


def table_item(collector: pytest.Collector, name: str, test: object) -> pytest.Item | None:
    """One item for all cases of a test, or None where pytest has to make its items itself."""
    if not inspect.isfunction(test) or not name.startswith("test_") or test in _listed:
        return None
    if _prepares(collector.obj) or not (cases := cases_of(test)):
        return None
    outcomes = _Outcomes(collector, name, test)
    # Each case has an instance of its own, as each item has.
    of_class = [collector.obj] if isinstance(collector, pytest.Class) else []

    def table() -> None:
        with outcomes.told():
            for case in cases:
                with outcomes.recorded():
                    test(*(instance() for instance in of_class), **case)

    async def async_table() -> None:
        with outcomes.told():
            for case in cases:
                with outcomes.recorded():
                    await test(*(instance() for instance in of_class), **case)

    run = wraps(test)(async_table if inspect.iscoroutinefunction(test) else table)
    run.__dict__ |= {"__signature__": inspect.Signature(), "pytestmark": []}
    return pytest.Function.from_parent(collector, name=name, callobj=run)


def cases_of(test: Callable[..., object]) -> list[dict[str, Any]]:
    """The arguments of each case in pytest's order; none where a case needs more than arguments."""
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    plain = all(mark.name == "parametrize" and mark.kwargs.keys() <= {"ids"} for mark in marks)
    if not plain or getattr(test, "is_hypothesis_test", False):
        return []
    tables = []
    for names, rows in (mark.args for mark in marks):
        # An iterator can be read only once, and naming what failed reads again.
        if not isinstance(rows, Collection) or any(isinstance(row, _PARAM) for row in rows):
            return []
        columns = [part.strip() for part in names.split(",")] if isinstance(names, str) else names
        values = ([row] if len(columns) == 1 else row for row in rows)
        tables.append([dict(zip(columns, row, strict=True)) for row in values])
    cases = [dict(ChainMap(*parts)) for parts in itertools.product(*tables) if parts]
    needed = inspect.signature(test).parameters.keys() - {"self"}
    return cases if cases and cases[0].keys() == needed else []


def _prepares(holder: object) -> bool:
    """Whether a class or module does something before or behind each item, so behind each case."""
    names = ("setup_method", "teardown_method", "setup_function", "teardown_function")
    return any(hasattr(holder, name) for name in names) or any(
        isinstance(one, FixtureFunctionDefinition) and one._fixture_function_marker.autouse
        for one in (getattr(holder, name, None) for name in dir(holder))
    )


class _Outcomes:
    def __init__(self, collector: pytest.Collector, name: str, test: object) -> None:
        self._collector, self._name, self._test = collector, name, test
        self._errors: list[BaseException | None] = []

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """One case. One that skips itself fails: nobody would see that it was left out."""
        self._errors.append(None)
        try:
            yield
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001
            self._errors[-1] = error

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise what all cases raised, with the names that select these cases."""
        self._errors.clear()
        yield
        if all(error is None for error in self._errors):
            return
        pairs = zip(self._names(), self._errors, strict=True)
        failed = {name: error for name, error in pairs if error is not None}
        for name, error in failed.items():
            error.add_note(f"in {name}")
        text = f"{len(failed)} of {len(self._errors)} cases failed: {', '.join(failed)}"
        raise BaseExceptionGroup(text, list(failed.values()))

    def _names(self) -> list[str]:
        _listed.add(self._test)
        items = self._collector.ihook.pytest_pycollect_makeitem(
            collector=self._collector, name=self._name, obj=self._test
        )
        _listed.remove(self._test)
        return [item.name for item in items]
