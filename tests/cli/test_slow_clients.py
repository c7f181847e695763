"""Callers without a key who hold connections open, against the service as people run it."""

import socket
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import psutil
import pytest
from cli_support import Service, eventually

from tests.support.patience import PATIENCE

MEBIBYTE = 1024 * 1024
MOST_GROWTH = 8 * MEBIBYTE
"""From one flood to the next. The first makes the allocator keep some 20 MiB for good; without
limits each that is held open takes another 46."""

HEAD = b"POST /v1/memories HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    # What is done in the background takes memory too.
    return {"MEMORY_WORKER_ENABLED": "false"}


def resident(service: Service) -> int:
    return psutil.Process(service.process.pid).memory_info().rss


def connections(service: Service, port: int) -> int:
    """Connections of callers that the service holds."""
    held = psutil.Process(service.process.pid).net_connections()
    return sum(one.laddr.port == port and bool(one.raddr) for one in held)


def send_endlessly(connection: socket.socket) -> None:
    """Send headers as long as the other side takes them, 1.2 MB at most."""
    with suppress(OSError):
        for _ in range(20):
            connection.sendall(b"X: " + b"a" * 60_000)


@pytest.mark.slow
def test_five_hundred_slow_callers_and_endless_headers_leave_the_memory_flat(
    service: Service,
) -> None:
    address = urlsplit(service.address)
    half = HEAD + b"Content-Length: 2000000\r\n\r\n{" + b"x" * 60_000

    with service.client() as client, ExitStack() as stack:

        def connect(sent: bytes) -> socket.socket:
            made = socket.create_connection((address.hostname, address.port), timeout=PATIENCE)
            stack.enter_context(made)
            made.sendall(sent)
            return made

        def flood() -> int:
            slow = [connect(HEAD) for _ in range(250)]
            slow += [connect(half) for _ in range(250)]
            for _ in range(50):
                send_endlessly(connect(HEAD))
            assert client.get("/memories").status_code == 200
            # Whoever has no key hears of it, and is closed.
            assert {one.recv(12) for one in slow[:250]} == {b"HTTP/1.1 408"}
            assert {one.recv(12) for one in slow[250:]} == {b"HTTP/1.1 401"}
            eventually(lambda: connections(service, address.port) <= 1)
            assert client.get("/memories").status_code == 200
            return resident(service)

        first = flood()
        assert flood() - first < MOST_GROWTH
