"""LangGraph's own conformance suite for savers, over HTTP against a running `kemem serve`."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from kemem import AsyncMemory, Memory
from kemem.langgraph import KeMemSaver
from tests.cli.cli_support import Service, embedded

pytestmark = pytest.mark.slow

# All that the suite of this release has; a new one may have more, and then they are ours too.
EVERY_CAPABILITY = {
    "put", "put_writes", "get_tuple", "list", "delete_thread",
    "delete_for_runs", "copy_thread", "prune",
}  # fmt: skip


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """On a short folder open to all: pytest's own are closed to the account that root lends."""
    folder = Path(tempfile.mkdtemp(prefix="kl-", dir="/tmp"))
    folder.chmod(0o755)
    with embedded(folder / "data") as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("kind", ["Memory", "AsyncMemory"])
async def test_saver_passes_every_conformance_test(service: Service, kind: str) -> None:
    @checkpointer_test(name=f"KeMemSaver over {kind}")
    async def savers() -> AsyncIterator[KeMemSaver]:
        if kind == "Memory":
            with Memory(service.address, service.key) as memory:
                yield KeMemSaver(memory, user_id="ana")
        else:
            async with AsyncMemory(service.address, service.key) as memory:
                yield KeMemSaver(memory, user_id="ana")

    report = await validate(savers)

    assert {one.value for one in Capability} == EVERY_CAPABILITY
    failures = [line for result in report.results.values() for line in result.failures or []]
    assert failures == []
    assert {name for name, one in report.results.items() if one.passed} == EVERY_CAPABILITY
    assert sum(one.tests_passed for one in report.results.values()) >= 80
