"""The callers, in a process of their own: `python -m benchmarks.load`.

Reads one job per line from standard input and writes one result per line. Requests are bytes made
before the measurement and answers are only split by their length, so a request costs the client
some 20 microseconds and the client is never the limit. Each result says which share of a core it
used.
"""

import asyncio
import base64
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import uvloop
from typing_extensions import override


@dataclass(slots=True)
class Tally:
    """What the callers of one job share."""

    requests: list[bytes]
    once: bool
    deadline: float = 0.0
    next: int = 0
    seconds: list[float] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)
    sample: str = ""

    def take(self) -> bytes | None:
        """The next request, or None when the job is over."""
        if time.perf_counter() >= self.deadline or (self.once and self.next >= len(self.requests)):
            return None
        self.next += 1
        return self.requests[(self.next - 1) % len(self.requests)]


class Caller(asyncio.Protocol):
    """One keep-alive connection with one request under way."""

    def __init__(self, tally: Tally, done: asyncio.Future[None]) -> None:
        self._tally = tally
        self._done = done
        self._buffer = bytearray()
        # uvloop has transports of its own, of no class that asyncio knows.
        self._transport: Any = None
        self._began = 0.0

    @override
    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = self._tally.take()
        if request is None:
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        named = self._buffer.find(b"content-length: ", 0, head)
        length = int(self._buffer[named + 16 : self._buffer.find(b"\r", named + 16)])
        if len(self._buffer) < head + 4 + length:
            return
        tally = self._tally
        tally.seconds.append(time.perf_counter() - self._began)
        status = bytes(self._buffer[9:12]).decode()
        if status[0] != "2":
            tally.failures[status] = tally.failures.get(status, 0) + 1
            tally.sample = self._buffer[head + 4 :].decode()
        self._buffer.clear()
        self._send()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(None)


async def run(job: dict[str, Any]) -> dict[str, Any]:
    """Keep `callers` requests under way for `seconds`, or until each was sent `once`."""
    loop = asyncio.get_running_loop()
    requests = [base64.b64decode(one) for one in job["requests"]]
    tally = Tally(requests, bool(job.get("once")))
    began, busy = time.perf_counter(), time.process_time()
    tally.deadline = began + job["seconds"]
    ends = []
    for _ in range(job["callers"]):
        done = loop.create_future()
        ends.append(done)
        await loop.create_connection(
            lambda done=done: Caller(tally, done),  # type: ignore[misc]
            "127.0.0.1",
            job["port"],
        )
    await asyncio.gather(*ends)
    took = time.perf_counter() - began
    return {
        "seconds": took,
        "latencies": tally.seconds,
        "client_share": (time.process_time() - busy) / took,
        "failures": tally.failures,
        "sample": tally.sample,
    }


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin:
            sys.stdout.write(json.dumps(runner.run(run(json.loads(line)))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
