"""The store against a running `kemem serve`: the example of the manual, and a service that dies."""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kemem import KememError, Memory
from kemem.langgraph import KeMemStore
from tests.cli.cli_support import Service, embedded, environment
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "langgraph.md").read_text(encoding="utf-8")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short and open to all: pytest's own are closed to the account that root lends."""
    path = Path(tempfile.mkdtemp(prefix="ks-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    with embedded(folder / "data") as running:
        yield running


MODEL = """
from tests.support.scripted_model import Scripted

model = Scripted(
    script=[
        ("manage_memory", {"content": "Likes green tea."}), "Noted.",
        ("search_memory", {"query": "drinks"}), "Green tea.",
    ]
)
"""


def test_example_of_the_manual_runs(service: Service) -> None:
    [example] = [
        code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "KeMemStore" in code
    ]
    more = {
        "KEMEM_URL": service.address, "KEMEM_API_KEY": service.key, "PYTHONPATH": str(ROOT),
    }  # fmt: skip

    done = subprocess.run(
        [sys.executable, "-c", f"{MODEL}{example}assert model.script == []"],
        env=environment(more), capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "{'content': 'Likes green tea.'}" in done.stdout
    with service.client() as client:
        receipt = client.delete("/users/ana", params={"confirm": True}).json()
    assert receipt["deleted"]["store_items"] == 1


def test_what_was_acknowledged_survives_the_death_of_the_service(
    folder: Path, service: Service
) -> None:
    done: list[int] = []
    started = threading.Event()

    def put() -> None:
        with Memory(service.address, service.key, max_retries=0) as memory:
            store = KeMemStore(memory)
            for number in range(10_000):
                try:
                    store.put(("t",), str(number), {"text": f"number {number}"})
                except KememError:
                    return
                done.append(number)
                if number == 20:
                    started.set()

    writer = threading.Thread(target=put)
    writer.start()
    assert started.wait(PATIENCE)
    service.stop(signal.SIGKILL)
    writer.join(PATIENCE)

    with embedded(folder / "data") as again, Memory(again.address, again.key) as memory:
        store = KeMemStore(memory)
        stored = {int(item.key): item.score for item in store.search(("t",), query="n", limit=9999)}
    assert set(done) <= stored.keys()
    # One more may have been stored whose answer was lost; all have their vectors.
    assert len(stored) <= len(done) + 1
    assert None not in stored.values()


def test_dead_service_is_an_error(service: Service) -> None:
    with Memory(service.address, service.key, max_retries=0) as memory:
        store = KeMemStore(memory)
        store.put(("t",), "k", {})
        service.stop(signal.SIGKILL)

        for use in (
            lambda: store.get(("t",), "k"), lambda: store.put(("t",), "k", {}),
            lambda: store.search(("t",)), store.list_namespaces,
        ):  # fmt: skip
            with pytest.raises(KememError):
                use()
