"""A real conversation loaded turn by turn, and its questions answered by the turns found."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

from app.console import out, print_table, progress
from app.evaluation.api import Api
from app.evaluation.locomo import (
    CATEGORIES,
    LocomoConversation,
    LocomoQuestion,
    LocomoTurn,
    Sitting,
)

BATCH = 100
AGENT = "locomo"
TOP = 10


@dataclass(slots=True)
class LoadedConversation:
    """What became of the turns."""

    messages: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    turns: dict[str, set[str]] = field(default_factory=dict)
    """Which turns a memory holds: more than one when they are word for word the same."""


class Loader:
    """Loads one conversation; safe to repeat, because every id derives from it."""

    def __init__(self, api: Api, talk: LocomoConversation, concurrency: int) -> None:
        self._api = api
        self._talk = talk
        self._slots = asyncio.Semaphore(concurrency)
        self.loaded = LoadedConversation()

    async def prepare(self) -> None:
        """The agent, the user and the sessions, unless they are there."""
        for path, body in (
            ("/agents", {"agent_id": AGENT, "agent_name": "LoCoMo"}),
            (
                "/users",
                {
                    "user_id": self._talk.user_id,
                    "agent_id": AGENT,
                    "user_name": " and ".join(self._talk.speakers),
                },
            ),
        ):
            await self._api.post(path, body, expected=(409,))

    def _session_id(self, sitting: Sitting) -> str:
        return f"{self._talk.user_id}-{sitting.number}"

    async def add_messages(self, sitting: Sitting, done: Callable[[int], None]) -> None:
        """Every turn of a session as a message, in order."""
        session_id = self._session_id(sitting)
        async with self._slots:
            await self._api.post(
                "/sessions",
                {
                    "session_id": session_id,
                    "user_id": self._talk.user_id,
                    "agent_id": AGENT,
                    "session_name": sitting.date,
                },
                expected=(409,),
            )
            for turns in _batches(sitting.turns):
                body = {"messages": [self._message(turn, sitting) for turn in turns]}
                answer = await self._api.post(f"/sessions/{session_id}/messages", body)
                self.loaded.messages["created"] += answer.body["created"]
                self.loaded.messages["existing"] += answer.body["existing"]
                done(len(turns))

    def _message(self, turn: LocomoTurn, sitting: Sitting) -> dict[str, Any]:
        return {
            "message_id": f"{self._talk.user_id}:{turn.dia_id}",
            "role": turn.role,
            "content": turn.text or turn.statement,
            "name": turn.speaker,
            "metadata": _metadata(turn, sitting),
        }

    async def add_memories(self, sitting: Sitting, done: Callable[[int], None]) -> None:
        """Every turn of a session as a memory, as it stands."""
        async with self._slots:
            for turns in _batches(sitting.turns):
                answer = await self._api.post("/memories", self._memories(turns, sitting))
                for outcome in answer.body["results"]:
                    self._note(turns[outcome["index"]], outcome)
                done(len(turns))

    def _memories(self, turns: tuple[LocomoTurn, ...], sitting: Sitting) -> dict[str, Any]:
        return {
            "messages": [
                {
                    "role": turn.role,
                    "content": turn.statement,
                    "name": turn.speaker,
                    "metadata": _metadata(turn, sitting),
                }
                for turn in turns
            ],
            "user_id": self._talk.user_id,
            "session_id": self._session_id(sitting),
            "scope": "user",
            "source": "import",
            "infer": False,
            "on_duplicate": "allow",
        }

    def _note(self, turn: LocomoTurn, outcome: dict[str, Any]) -> None:
        self.loaded.events[outcome["event"]] += 1
        self.loaded.refusals.update(reason["code"] for reason in outcome["reasons"])
        if outcome["memory_id"]:
            self.loaded.turns.setdefault(outcome["memory_id"], set()).add(turn.dia_id)


def _metadata(turn: LocomoTurn, sitting: Sitting) -> dict[str, Any]:
    return {"speaker": turn.speaker, "dia_id": turn.dia_id, "session_date": sitting.date}


def _batches(turns: Iterable[LocomoTurn]) -> list[tuple[LocomoTurn, ...]]:
    held = tuple(turns)
    return [held[start : start + BATCH] for start in range(0, len(held), BATCH)]


async def play_locomo(
    api: Api, talk: LocomoConversation, *, questions: int, concurrency: int
) -> None:
    """Load the conversation, say how fast, and ask its questions."""
    loader = Loader(api, talk, concurrency)
    await loader.prepare()
    out.print(
        f"\n{talk.name}: {' and '.join(talk.speakers)}, {len(talk.sittings)} sessions, "
        f"{talk.turn_count} turns, as the user {talk.user_id}\n"
    )
    with progress("turns") as bar:
        seconds = {}
        for name, load in (("messages", loader.add_messages), ("memories", loader.add_memories)):
            task = bar.add_task(name.capitalize(), total=talk.turn_count)
            seconds[name] = await _timed(load, talk.sittings, partial(bar.advance, task))
    _report(loader.loaded, talk, seconds)
    asked = [
        question
        for question in talk.questions
        if question.category in CATEGORIES and question.evidence
    ]
    await _ask(api, talk, loader.loaded, asked[:questions])


async def _timed(
    load: Callable[[Sitting, Callable[[int], None]], Awaitable[None]],
    sittings: Iterable[Sitting],
    done: Callable[[int], None],
) -> float:
    started = perf_counter()
    await asyncio.gather(*(load(sitting, done) for sitting in sittings))
    return perf_counter() - started


def _report(
    loaded: LoadedConversation, talk: LocomoConversation, seconds: dict[str, float]
) -> None:
    rates = {name: talk.turn_count / taken for name, taken in seconds.items()}
    out.print(
        f"Messages: {loaded.messages['created']} stored, {loaded.messages['existing']} were "
        f"there before; {rates['messages']:,.0f} a second."
    )
    out.print(
        f"Memories: {loaded.events['ADD']} stored, {loaded.events['NONE']} exact duplicates, "
        f"{loaded.events['REJECT']} refused; {rates['memories']:,.0f} a second."
    )
    for code, count in loaded.refusals.most_common():
        out.print(f"  refused as {code}: {count}")


async def _ask(
    api: Api, talk: LocomoConversation, loaded: LoadedConversation, asked: list[LocomoQuestion]
) -> None:
    hits = 0
    for question in asked:
        answer = await api.post(
            "/memories/search",
            {"query": question.text, "user_id": talk.user_id, "limit": TOP, "explain": True},
        )
        rows = []
        found = False
        for rank, hit in enumerate(answer.body["results"], 1):
            turns = loaded.turns.get(hit["memory_id"], set())
            is_evidence = bool(turns & question.evidence)
            found |= is_evidence
            rows.append(
                (
                    rank,
                    "evidence" if is_evidence else "",
                    f"{hit['score']:.3f}",
                    f"{hit['similarity']:.3f}",
                    ", ".join(sorted(turns)),
                    hit["content"],
                )
            )
        hits += found
        out.print()
        print_table(
            f"{question.text}  [{CATEGORIES[question.category]}; answer: {question.answer}; "
            f"evidence: {', '.join(sorted(question.evidence))}]",
            ("rank", "", "score", "similarity", "turn", "said"),
            rows,
            right=("rank", "score", "similarity", "turn"),
        )
    if asked:
        out.print(
            f"\n{hits} of {len(asked)} questions had evidence among the first {TOP} turns found."
        )
