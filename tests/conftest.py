"""Which fixtures a test may ask for. Nothing of the application is imported here.

Tests under `tests/unit` need no database and no application. All others may use the fixtures of
`tests/support/fixtures.py`, which load with the first folder that is collected beside `unit`:
a run of unit tests alone imports and starts nothing of it.
"""

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from tests.support.days import LONGEST_TEST, LONGEST_UNIT_TEST, wait_until_no_midnight_is_near

# Services that tests start are recorded apart from those of whoever runs the tests.
_state = tempfile.TemporaryDirectory(prefix="kemem-state-")
os.environ["XDG_STATE_HOME"] = _state.name

# Compiling takes a third of the start of each process that tests start: it is done once, also where
# the environment asks for no bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

TESTS = Path(__file__).parent
UNIT = TESTS / "unit"
FIXTURES = "tests.support.fixtures"

# How many examples a property test draws; `make test-slow` runs all of them thoroughly.
settings.register_profile("quick", settings.get_profile("ci"), max_examples=15)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=300)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> None:
    """Load the fixtures of the service before the first tests that may use them."""
    if file_path.parent != TESTS and UNIT not in file_path.parents:
        parent.config.pluginmanager.import_plugin(FIXTURES)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a unit test that asks for a database, also where others are collected with it."""
    wrong = [
        item.nodeid
        for item in items
        if UNIT in item.path.parents
        and isinstance(item, pytest.Function)
        and "data_folder" in item.fixturenames
    ]
    if wrong:
        message = "these tests use a database and belong outside tests/unit: " + ", ".join(wrong)
        raise pytest.UsageError(message)


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """A command that runs in this process leaves its level of logging behind."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """No midnight comes while a test runs: some name today, and quotas begin anew."""
    is_unit = UNIT in item.path.parents
    wait_until_no_midnight_is_near(LONGEST_UNIT_TEST if is_unit else LONGEST_TEST)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What collection makes stays to the end: no garbage is looked for among it, then or later.

    Looking took 3 of 7 seconds of collecting, and a tenth of the run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
