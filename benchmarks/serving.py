"""An application on a port of its own, in one process, as `kemem serve` runs it."""

import json
import socket
from typing import Any

import uvicorn
from typing_extensions import override


class _Announcing(uvicorn.Server):
    """Says its port on standard output once it takes requests."""

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        assert sockets is not None
        print(json.dumps({"port": sockets[0].getsockname()[1]}), flush=True)


def serve(app: Any) -> None:
    """Block until the process is told to end."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, loop="uvloop", http="httptools", lifespan="on", access_log=False, log_level="warning"
    )
    _Announcing(config).run(sockets=[listening])
