"""mem0's dialect as its clients reach it: in this process, or a service on loopback for others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from app.runtime import Runtime
from app.worker import working
from tests.support.environments import quiet_environment
from tests.support.patience import PATIENCE
from tests.support.service import listening


def mem0_client(app: FastAPI, key: str | None) -> AsyncClient:
    """A client that writes its key as mem0's do."""
    headers = {} if key is None else {"Authorization": f"Token {key}"}
    transport = ASGITransport(app.state.reached, raise_app_exceptions=False)
    return AsyncClient(
        transport=transport, base_url="http://test/mem0", headers=headers, timeout=PATIENCE
    )


@asynccontextmanager
async def served_with_worker(app: FastAPI, runtime: Runtime, dsn: str) -> AsyncIterator[str]:
    """The address of mem0's API on loopback, with a worker behind it."""
    async with listening(app) as port, working(runtime, dsn):
        yield f"http://127.0.0.1:{port}/mem0"


async def run_script(
    interpreter: Path, script: Path, *arguments: str, folder: Path, **variables: str
) -> str:
    """What a script of another product's package prints; its own errors fail the test."""
    environment = quiet_environment(MEM0_DIR=str(folder), HOME=str(folder), **variables)
    process = await asyncio.create_subprocess_exec(
        str(interpreter), str(script), *arguments,
        cwd=folder, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode == 0, f"{out.decode()}\n{err.decode()}"
    return out.decode()


async def store_text(client: AsyncClient, text: str, **fields: object) -> str:
    """Store one text as it is; the id of its memory."""
    body = {"messages": [{"role": "user", "content": text}], "infer": False}
    response = await client.post("/v3/memories/add/", json=body | fields)
    assert response.status_code == 200, response.text
    memory_id: str = response.json()["results"][0]["id"]
    return memory_id
