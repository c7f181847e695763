"""The other processes of a service, forked by one that was itself forked before there were threads.

What was imported and loaded by then is shared between all of them. A process that dies is started
again, with a pause that grows while it keeps dying. They end with the process that began the fork
server, also when that one is killed: its end of the control socket closes then.

A terminal and a process manager send their signals to every process they know. All but the first
process ignore SIGINT and SIGTERM and are stopped by STOP, which `ForkServer.stop` passes on. It is
blocked when a child begins to run, which unblocks it when it handles it.
"""

import asyncio
import ctypes
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NoReturn, Self

import structlog

log = structlog.get_logger()

STOP: Final = signal.SIGUSR1
"""What a child gets for each call of `stop`."""

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(seconds=30)
"""Between the death of a child and its next start; doubled as long as it lives no longer."""

_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class Child:
    """A process that is kept running.

    Args:
        name: for the log.
        run: what it does with the message of `ForkServer.start`, until STOP; its exit code.
        listens: whether it is given the service's sockets, which the others close.

    """

    name: str
    run: Callable[[str], int]
    listens: bool = False


class ForkServer:
    """Keeps `children` running from `start` to `close`. Belongs to the process that began it."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self._pid = pid
        self._control = control

    @classmethod
    def begin(
        cls,
        children: Sequence[Child],
        *,
        sockets: Sequence[socket.socket] = (),
        prepare: Callable[[], None],
    ) -> Self:
        """Fork it. To be called before there is a thread or an event loop, and with all imported
        that the children need.

        Args:
            children: none of them runs before `start`.
            sockets: what the service listens on.
            prepare: done by the fork server before it forks, so that the children share it.

        """
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        # What all share is not written to by a search for garbage.
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            ours.close()
            _leave(lambda: _Server(theirs, children, sockets, prepare).run(parent))
        theirs.close()
        ours.setblocking(False)
        return cls(pid, ours)

    def start(self, message: str) -> None:
        """Have every child run with a message of one line, such as the URL of the database."""
        self._send(f"{message}\n".encode())

    def stop(self) -> None:
        """Send STOP to every child, and start none again; safe to repeat."""
        self._send(b"\n")

    async def ended(self) -> None:
        """Return when all children have ended after `stop`, or the fork server was killed, and
        they with it.
        """
        with suppress(ConnectionError):
            await asyncio.get_running_loop().sock_recv(self._control, 1)

    def close(self) -> None:
        """Kill whatever still runs; safe to repeat."""
        self._control.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _send(self, data: bytes) -> None:
        # Whoever is gone needs no message.
        with suppress(OSError):
            self._control.send(data)


def _leave(work: Callable[[], int]) -> NoReturn:
    """End a forked process with the result of its work; nothing of its parent is cleaned up."""
    code = 1
    try:
        code = work()
    except BaseException:
        log.exception("process_failed")
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _end_with(parent: int) -> None:
    """Be killed when the parent dies, at once and whatever this process does; on Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        # It died before the request, so no signal will ever come.
        os._exit(1)


def _end_at_eof(pipe: int) -> None:
    """End when nobody holds the other end of the pipe any more; on every system."""

    def watch() -> None:
        os.read(pipe, 1)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


@dataclass(slots=True)
class _Place:
    """A child, running or to be started again."""

    child: Child
    pid: int | None = None
    began: float = 0.0
    pause: float = 0.0
    due: float = 0.0


class _Server:
    """The fork server's own process: one thread, no event loop, nothing but this module."""

    def __init__(
        self,
        control: socket.socket,
        children: Sequence[Child],
        sockets: Sequence[socket.socket],
        prepare: Callable[[], None],
    ) -> None:
        self._control = control
        self._places = [_Place(child) for child in children]
        self._sockets = sockets
        self._prepare = prepare
        self._stopping = False
        self._wakes, self._woken = socket.socketpair()
        self._read_end, self._write_end = os.pipe()
        """Nothing is written to it: children read its end when this process has gone."""

    def run(self, parent: int) -> int:
        # Away from the terminal: its Ctrl-C is for the process that began this one.
        os.setsid()
        _end_with(parent)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        # A STOP that comes before a child is ready for it must not be lost, and some systems
        # discard one that is ignored.
        signal.pthread_sigmask(signal.SIG_BLOCK, {STOP})
        signal.signal(STOP, signal.SIG_DFL)
        for socket_ in (self._wakes, self._woken):
            socket_.setblocking(False)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if not any(place.child.listens for place in self._places):
            self._stop_listening()
        message, more = self._message()
        if message is None:
            return 0
        self._prepare()
        gc.freeze()
        self._take(more)
        while not self._stopping or any(place.pid for place in self._places):
            for place in self._places:
                if not self._stopping and place.pid is None and place.due <= time.monotonic():
                    self._begin(place, message)
            if not self._wait():
                self._kill()
                return 1
        return 0

    def _message(self) -> tuple[str | None, bytes]:
        """The message of the start, and what came behind it; None when there will be none."""
        data = b""
        while b"\n" not in data:
            try:
                part = self._control.recv(65536)
            except ConnectionError:
                part = b""
            if not part:
                return None, b""
            data += part
        message, _, more = data.partition(b"\n")
        return message.decode(), more

    def _wait(self) -> bool:
        """Wait for a command, the end of a child, or the time to start one; False when the
        process that began this one has gone.
        """
        due = [place.due for place in self._places if place.pid is None and not self._stopping]
        timeout = max(min(due) - time.monotonic(), 0) if due else None
        readable, _, _ = select.select([self._control, self._wakes], [], [], timeout)
        if self._wakes in readable:
            self._wakes.recv(4096)
        self._reap()
        if self._control in readable:
            try:
                data = self._control.recv(4096)
            except ConnectionError:
                data = b""
            self._take(data)
            return bool(data)
        return True

    def _take(self, commands: bytes) -> None:
        for _ in commands:
            self._stopping = True
            self._stop_listening()
            for place in self._places:
                if place.pid is not None:
                    os.kill(place.pid, STOP)

    def _stop_listening(self) -> None:
        # A socket that is open anywhere still takes connections, which nobody would answer.
        for listener in self._sockets:
            listener.close()

    def _begin(self, place: _Place, message: str) -> None:
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            _leave(lambda: self._become(place.child, message, server))
        place.pid, place.began = pid, time.monotonic()
        log.info("process_started", process=place.child.name, pid=pid)

    def _become(self, child: Child, message: str, server: int) -> int:
        _end_with(server)
        os.close(self._write_end)
        _end_at_eof(self._read_end)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for socket_ in (self._control, self._wakes, self._woken):
            socket_.close()
        if not child.listens:
            self._stop_listening()
        return child.run(message)

    def _reap(self) -> None:
        for place in self._places:
            if place.pid is None:
                continue
            pid, status = os.waitpid(place.pid, os.WNOHANG)
            if pid:
                self._note_end(place, os.waitstatus_to_exitcode(status))

    def _note_end(self, place: _Place, code: int) -> None:
        pid, place.pid = place.pid, None
        if self._stopping:
            return
        now = time.monotonic()
        longest = LONGEST_PAUSE.total_seconds()
        lived = now - place.began
        place.pause = (
            FIRST_PAUSE.total_seconds() if lived > longest or not place.pause
            else min(2 * place.pause, longest)
        )  # fmt: skip
        place.due = now + place.pause
        log.error(
            "process_died", process=place.child.name, pid=pid, code=code,
            next_start_seconds=place.pause,
        )  # fmt: skip

    def _kill(self) -> None:
        for place in self._places:
            if place.pid is not None:
                os.kill(place.pid, signal.SIGKILL)
                os.waitpid(place.pid, 0)
