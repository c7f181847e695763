"""Forks processes of `kemem worker` that have imported the service already, which takes each 2 s.

It has no thread, so that a fork is sound. An order on its socket is an environment, with two files:
what the worker writes to, and one that it alone holds open while it lives.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence

from app.cli.main import load, main


def fork(environment: dict[str, str], files: Sequence[int], orders: socket.socket) -> int:
    """Begin a worker; its process. In that process itself this does not return."""
    pid = os.fork()
    if pid:
        return pid
    orders.close()
    output, held = files
    os.set_inheritable(held, False)
    os.dup2(output, sys.stdout.fileno())
    os.close(output)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["kemem", "worker"]
    main()
    sys.exit()


def serve(orders: socket.socket) -> None:
    """Take orders until nobody can give any."""
    load("app.cli.worker:worker_command")
    # Nobody here waits for the workers.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    said, files = b"", []
    while True:
        part, more, _, _ = socket.recv_fds(orders, 65536, 2)
        if not part:
            return
        said, files = said + part, files + more
        if said.endswith(b"\n"):
            pid = fork(json.loads(said), files, orders)
            for file in files:
                os.close(file)
            orders.sendall(f"{pid}\n".encode())
            said, files = b"", []


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
