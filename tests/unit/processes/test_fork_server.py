"""Children of a fork server, on a system that kills no process together with its parent."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

SERVICE = """
import os, signal, sys
from app.platform.processes.fork_server import STOP, Child, ForkServer
sys.platform = "darwin"

def run(message):
    ignored = signal.getsignal(STOP) is signal.SIG_IGN
    print("child", os.getpid(), "ignores" if ignored else "heeds", flush=True)
    print("got", signal.sigtimedwait({STOP}, 60), flush=True)
    return 0

server = ForkServer.begin([Child("one", run)], prepare=lambda: None)
server.start("now")
sys.stdin.readline()
server.stop()
sys.stdin.read()
"""


@pytest.fixture
def service() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def said(service: subprocess.Popen[str], beginning: str) -> str:
    """What the child says next; the fork server logs between its lines."""
    assert service.stdout is not None
    line = next(each for each in service.stdout if each.startswith(beginning))
    return line.removeprefix(beginning).strip()


def test_a_child_ends_with_the_fork_server(service: subprocess.Popen[str]) -> None:
    child = psutil.Process(int(said(service, "child ").split()[0]))
    server = child.ppid()
    assert server != service.pid

    os.kill(server, signal.SIGKILL)

    _, alive = psutil.wait_procs([child], timeout=30)
    assert not alive
    assert service.poll() is None


def test_a_child_is_stopped_also_before_it_is_ready_for_it(
    service: subprocess.Popen[str],
) -> None:
    # Blocked it waits. Ignored as well, it would be discarded on some systems.
    assert said(service, "child ").endswith("heeds")
    assert service.stdin is not None

    service.stdin.write("\n")
    service.stdin.flush()

    assert f"si_signo={int(signal.SIGUSR1)}" in said(service, "got ")
