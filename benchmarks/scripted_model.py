"""An endpoint in OpenAI's dialect whose answers follow from the prompt, and that counts.

It answers by the schema that a request asks for: what it has to say about a property it says, and
the others are null or empty. So it goes on answering when prompts and schemas change.
"""

import asyncio
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from app.language.llm.tokens import EstimatedTokens

SHORTEST: Final = {"en": 60, "zh": 15}
"""Characters from which a message of the user holds a statement."""

LONGEST: Final = 200
ATTRIBUTES: Final = 40
"""How many attributes there are; every second statement has one."""

_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s*")

Lines = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Spent:
    """What was asked since the last reset, by the name of the schema."""

    calls: Counter[str] = field(default_factory=Counter)
    input_tokens: Counter[str] = field(default_factory=Counter)
    output_tokens: Counter[str] = field(default_factory=Counter)
    statements: int = 0
    """Entries that were answered to extractions."""
    entry_tokens: int = 0
    """Their tokens."""
    repeated: Counter[str] = field(default_factory=Counter)
    """Calls with a prompt that was answered before."""
    known: set[str] = field(default_factory=set)


class ScriptedModel:
    """Answers after `latency` seconds. Used by the one thread of its server."""

    def __init__(self, latency: float, language: str) -> None:
        self.latency = latency
        self.spent = Spent()
        self._shortest = SHORTEST[language]
        self._counter = EstimatedTokens()
        self._gate: tuple[int, threading.Event] | None = None

    def reset(self) -> None:
        """Count from nothing."""
        self.spent = Spent()

    @contextmanager
    def held(self, *, after: int) -> Iterator[None]:
        """Inside the block, give no further answers to extractions than so many."""
        release = threading.Event()
        self._gate = (after, release)
        try:
            yield
        finally:
            self._gate = None
            release.set()

    async def complete(self, request: Request) -> JSONResponse:
        body = await request.json()
        asked = body["response_format"]["json_schema"]
        sent = "".join(message["content"] for message in body["messages"])
        lines = _lines(body["messages"][-1]["content"])
        answer = self._answer(asked["schema"], lines)
        text = json.dumps(answer, ensure_ascii=False)
        tokens = self._counter.count(sent) + self._counter.count(json.dumps(asked["schema"]))
        written = self._counter.count(text)
        self._note(asked["name"], sent, tokens, written, answer)
        await asyncio.sleep(self.latency)
        gate = self._gate
        if gate is not None and self.spent.calls["memories"] > gate[0]:
            await asyncio.to_thread(gate[1].wait)
        return JSONResponse(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": text},
                        "finish_reason": "stop",
                    }
                ],
                "usage": {
                    "prompt_tokens": tokens,
                    "completion_tokens": written,
                    "total_tokens": tokens + written,
                },
            }
        )

    def _note(
        self, name: str, sent: str, tokens: int, written: int, answer: Mapping[str, Any]
    ) -> None:
        spent, digest = self.spent, sha256(sent.encode()).hexdigest()
        spent.calls[name] += 1
        spent.input_tokens[name] += tokens
        spent.output_tokens[name] += written
        spent.repeated[name] += digest in spent.known
        spent.known.add(digest)
        entries = answer.get("memories") or []
        spent.statements += len(entries)
        spent.entry_tokens += sum(
            self._counter.count(json.dumps(one, ensure_ascii=False)) for one in entries
        )

    def _answer(self, schema: Mapping[str, Any], lines: Lines) -> dict[str, Any]:
        said = [line for line in lines if line.get("kind") == "message" and line.get("id")]
        values: dict[str, Any] = {
            "reflection": "The user told of their days. The rest was context.",
            "memories": [
                _statement(line)
                for line in said
                if line["role"] == "user" and len(line["text"]) >= self._shortest
            ],
            "decisions": _decisions(lines),
            "values": _profile(schema, lines),
            "summary": " ".join(_sentence(line["text"]) for line in lines if line.get("text"))[
                : 2 * LONGEST
            ],
            "outcome": bool(said) and _number(said[0]["text"]) % 2 == 0,
            "experience": {
                "content": _sentence(said[0]["text"]),
                "confidence": 0.8,
                "evidence": [said[0]["id"]],
            }
            if said
            else None,
        }
        return dict(_fitted(schema, values))


def _lines(text: str) -> list[dict[str, Any]]:
    found = []
    for line in text.split("\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _number(text: str) -> int:
    return int(sha256(text.encode()).hexdigest(), 16)


def _sentence(text: str) -> str:
    return _SENTENCE.split(text.strip())[0][:LONGEST]


def _statement(line: Mapping[str, Any]) -> dict[str, Any]:
    """The first sentence of a message, every second one as the value of some attribute."""
    content = _sentence(line["text"])
    number = _number(content) % (2 * ATTRIBUTES)
    return {
        "content": content,
        "type": "fact",
        "confidence": 0.95,
        "evidence": [line["id"]],
        "scope": "user",
        "attribute": f"user.topic_{number}" if number < ATTRIBUTES else None,
    }


def _decisions(lines: Lines) -> list[dict[str, Any]]:
    """Whatever has the attribute of a statement ends; everything else is added."""
    memories = {line["id"]: line for line in lines if line.get("kind") == "memory"}
    decisions = []
    for line in lines:
        if line.get("kind") != "statement":
            continue
        same = [
            name
            for name in line.get("near", memories)
            if line.get("attribute")
            and name in memories
            and memories[name].get("attribute") == line["attribute"]
            and not memories[name].get("fixed")
        ]
        decisions.append(
            {
                "statement": line["id"],
                "reason": "It tells of another day.",
                "event": "SUPERSEDE" if same else "ADD",
                "memories": same[:1],
            }
        )
    return decisions


def _profile(schema: Mapping[str, Any], lines: Lines) -> list[dict[str, Any]]:
    """Every third slot says what one memory says."""
    told = [line for line in lines if line.get("kind") == "memory"]
    item = schema["properties"].get("values", {}).get("items", {})
    slots = item.get("properties", {}).get("slot", {}).get("enum", [])
    return [
        {
            "slot": slot,
            "text": line["text"][:100],
            "entries": [line["text"][:100]],
            "evidence": [line["id"]],
        }
        for slot, line in zip(slots[::3], told, strict=False)
    ]


def _fitted(schema: Mapping[str, Any], value: Any) -> Any:
    """The value as the schema wants it; what it lacks is null, else empty."""
    if "anyOf" in schema:
        kinds = [one for one in schema["anyOf"] if (one.get("type") == "null") == (value is None)]
        return _fitted((kinds or schema["anyOf"])[0], value)
    types = schema.get("type", [])
    kinds = [types] if isinstance(types, str) else list(types)
    if value is None and "null" in kinds:
        return None
    if "object" in kinds:
        given = value if isinstance(value, Mapping) else {}
        return {name: _fitted(one, given.get(name)) for name, one in schema["properties"].items()}
    if "array" in kinds:
        return [_fitted(schema.get("items", {}), one) for one in value or []]
    if value is not None and value in schema.get("enum", [value]):
        return value
    empty = {"string": "", "boolean": False, "number": 0, "integer": 1}
    return schema["enum"][0] if "enum" in schema else empty.get(kinds[0] if kinds else "")


@contextmanager
def served(model: ScriptedModel) -> Iterator[str]:
    """The model on a port of this machine, in a thread of its own; its base URL."""
    app = Starlette(
        routes=[Route("/v1/chat/completions", endpoint=model.complete, methods=["POST"])]
    )
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        runner = uvicorn.Server(
            uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
        )
        thread = threading.Thread(target=runner.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            runner.should_exit = True
            thread.join(timeout=10)
