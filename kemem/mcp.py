"""The Model Context Protocol over standard input and output, for desktops that start a program.

Every message goes to `/mcp` of a running service, and its answer comes back; nothing of the
protocol is decided here. Run as `kemem-mcp`, or as `kemem mcp` where the service is installed.
"""

import argparse
import asyncio
import json
import os
import sys
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Final
from uuid import uuid4

import httpx

from kemem.address import KEY_VARIABLE, URL_VARIABLE, Service, find_service
from kemem.errors import ConfigurationError
from kemem.ids import checked_id, in_header
from kemem.version import __version__

USER_VARIABLE: Final = "KEMEM_USER"
VERSION_FIELD: Final = "io.modelcontextprotocol/protocolVersion"
"""Where a message names its version itself, since 2026-07-28."""

PARSE_ERROR: Final = -32700
INTERNAL_ERROR: Final = -32603
NOT_SERVED: Final = -32000
PAUSES: Final = (0.2, 1.0)
"""Seconds before a message is sent again whose answer did not come: the service starts again."""

TIMEOUT: Final = httpx.Timeout(120, connect=10)

HOW: Final = (
    f"start it with `kemem serve`, or name another address in {URL_VARIABLE}, and its key in "
    f"{KEY_VARIABLE}."
)

Message = Mapping[str, Any]


class Relay:
    """Passes messages on to a service, each as soon as it comes."""

    def __init__(
        self,
        service: Service,
        http: httpx.AsyncClient,
        write: Callable[[bytes], None],
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        """Send with `http`, once more after each of `pauses`, and `write` answers, each a line."""
        self._url = f"{service.base_url}/mcp"
        self._http = http
        self._write = write
        self._pauses = pauses
        self._version: str | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._noted: set[asyncio.Task[None]] = set()

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        """Pass on every line, until there are no more and all are answered."""
        async for line in lines:
            if line.strip():
                self._begin(line)
        await asyncio.gather(*self._running.values(), *self._noted, return_exceptions=True)

    def _begin(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            asked = message.get("id")
        except (ValueError, RecursionError, AttributeError):
            self._refuse(None, PARSE_ERROR, "This line is no message of JSON-RPC.")
            return
        if message.get("method") == "notifications/cancelled":
            # The service keeps nothing between messages: closing the connection is what it sees.
            task = self._running.get(json.dumps(_params(message).get("requestId")))
            if task is not None:
                task.cancel()
            return
        task = asyncio.create_task(self._pass_on(line, message))
        if asked is None:
            self._noted.add(task)
            task.add_done_callback(self._noted.discard)
        else:
            name = json.dumps(asked)
            self._running[name] = task
            task.add_done_callback(lambda _: self._running.pop(name, None))

    async def _pass_on(self, line: bytes, message: Message) -> None:
        try:
            await self._answer(line, message)
        except httpx.HTTPError as error:
            why = f"{self._url} does not answer ({type(error).__name__})"
            self._refuse(message.get("id"), NOT_SERVED, f"{why}: {HOW}")
        except Exception as error:  # noqa: BLE001
            # Without an answer the desktop waits for ever.
            why = f"this message could not be passed on ({type(error).__name__})."
            self._refuse(message.get("id"), INTERNAL_ERROR, why)

    async def _answer(self, line: bytes, message: Message) -> None:
        """Raises httpx.HTTPError."""
        answer = await self._sent(line, self._headers(message))
        if message.get("id") is None:
            return
        try:
            told = answer.json()
        except ValueError:
            told = None
        if not isinstance(told, dict):
            why = f"{self._url} is not a KeMem service that speaks MCP: it answers "
            self._refuse(message["id"], NOT_SERVED, f"{why}{answer.status_code}.")
        elif "jsonrpc" in told:
            if message.get("method") == "initialize":
                self._version = told.get("result", {}).get("protocolVersion")
            self._write(json.dumps(told, ensure_ascii=False).encode())
        else:
            # A problem document: the key, a limit, or no such route.
            said = f"{told.get('title', 'Refused')}: {told.get('detail', answer.status_code)}"
            self._refuse(message["id"], NOT_SERVED, said, code=told.get("code"))

    async def _sent(self, line: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """Raises httpx.HTTPError."""
        for pause in self._pauses:
            try:
                return await self._http.post(self._url, content=line, headers=headers)
            except httpx.TimeoutException:
                raise
            except httpx.TransportError:
                await asyncio.sleep(pause)
        return await self._http.post(self._url, content=line, headers=headers)

    def _headers(self, message: Message) -> dict[str, str]:
        params = _params(message)
        # A message that is sent again has one effect.
        headers = {"Idempotency-Key": str(uuid4())} if message.get("method") == "tools/call" else {}
        own = params.get("_meta")
        version = own.get(VERSION_FIELD) if isinstance(own, dict) else None
        if version is not None:
            headers |= {
                "MCP-Protocol-Version": _header(version),
                "Mcp-Method": _header(message.get("method")),
            }
            name = params.get("name", params.get("uri"))
            if name is not None:
                headers["Mcp-Name"] = _header(name)
        elif self._version is not None:
            headers["MCP-Protocol-Version"] = self._version
        return headers

    def _refuse(self, asked: Any, number: int, text: str, *, code: str | None = None) -> None:
        _say(text)
        error = {"code": number, "message": text} | ({"data": {"code": code}} if code else {})
        self._write(json.dumps({"jsonrpc": "2.0", "id": asked, "error": error}).encode())


def _say(sentence: str) -> None:
    """Into the log of the desktop; standard output is for messages alone."""
    sys.stderr.write(f"kemem: {sentence}\n")
    sys.stderr.flush()


def _header(value: Any) -> str:
    """A value as the protocol has it in a header: in Base64 where it is no plain ASCII."""
    text = str(value)
    plain = text.isascii() and text.isprintable() and text.strip() == text != ""
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{b64encode(text.encode(errors='replace')).decode()}?="


def _params(message: Message) -> Mapping[str, Any]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


async def _lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """The lines of a file that blocks, such as standard input on every system."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        # The loop is closed when the program ends while this waits.
        with suppress(RuntimeError):
            while line := source.readline():
                loop.call_soon_threadsafe(waiting.put_nowait, line)
            loop.call_soon_threadsafe(waiting.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    while line := await waiting.get():
        yield line


async def _relayed(service: Service) -> None:
    def write(line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    headers = {
        "Authorization": f"Bearer {service.key}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "User-Agent": f"kemem-mcp/{__version__}",
    }
    if service.acting_user is not None:
        headers["KeMem-User"] = in_header(service.acting_user)
    async with httpx.AsyncClient(headers=headers, timeout=TIMEOUT) as http:
        try:
            await http.get(f"{service.base_url}/livez")
        except httpx.HTTPError:
            _say(f"no service answers at {service.base_url}: {HOW}")
        await Relay(service, http, write).run(_lines(sys.stdin.buffer))


def serve_stdio(url: str | None = None, user: str | None = None) -> None:
    """Pass on standard input until it ends.

    Raises:
        ConfigurationError: the address is not valid, there is no key for it, or the user's id can
            be none.

    """
    found = find_service(url, None, os.environ)
    user = user or os.environ.get(USER_VARIABLE)
    if user:
        try:
            user = checked_id("user", user)
        except ValueError as error:
            raise ConfigurationError(f"--user or {USER_VARIABLE}: {error}") from None
    service = Service(found.base_url, found.key, found.key_origin, user)
    with suppress(KeyboardInterrupt):
        asyncio.run(_relayed(service))


def main() -> None:
    """The program `kemem-mcp`."""
    parser = argparse.ArgumentParser("kemem-mcp", description="KeMem for desktops that speak MCP.")
    parser.add_argument("--url", help=f"address of the service; {URL_VARIABLE} when left out")
    parser.add_argument("--user", help=f"whose memory; {USER_VARIABLE} when left out")
    given = parser.parse_args()
    try:
        serve_stdio(given.url, given.user)
    except ConfigurationError as error:
        sys.exit(f"kemem: {error}")


if __name__ == "__main__":
    main()
