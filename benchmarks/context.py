"""A context by the length of its session: `python -m benchmarks.context [--quick] [--out F]`.

Sessions of very different lengths, never compacted, of users with few and with many memories, are
asked for their context in turn, round after round. The length of the session should add nothing,
because no more of a window is read than its budget can hold. PostgreSQL counts the statements.
Users who said little and much elsewhere are asked with excerpts of it and without.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg

from app.language.llm.tokens import EstimatedTokens, message_tokens
from app.runtime import utc_now
from benchmarks.corpus import questions, sentences
from benchmarks.database import AGENT, TENANT, Cluster, fill, open_cluster
from benchmarks.processes import Child, Measured, Server, child, fire, median, post, server

LENGTHS: Final = (10, 1_000, 10_000)
MEMORIES: Final = (100, 10_000)
CALLERS: Final = (1, 8)
SAID: Final = (300, 10_000)
"""Messages of a user in other sessions, for excerpts; every second one is long."""
TALK: Final = 40
"""Messages of each of those sessions."""
LONG: Final = 20
"""Sentences of a long message, some 200 words."""
TWINS: Final = 3
"""Users of each size, so that nothing is measured of one row."""

_MESSAGES: Final = """
INSERT INTO messages (tenant_id, message_id, session_id, user_id, agent_id, role, content,
    sequence_no, token_count)
SELECT $1, $2 || '/' || place, $2, $3, $4,
    CASE WHEN place % 2 = 1 THEN 'user' ELSE 'assistant' END, content, place, tokens
FROM unnest(CAST($5 AS text[]), CAST($6 AS int8[])) WITH ORDINALITY
    AS said(content, tokens, place)
"""
_SESSION: Final = """
INSERT INTO sessions (tenant_id, session_id, user_id, agent_id, last_sequence_no, window_messages,
    window_tokens, window_seq, last_user_seq)
VALUES ($1, $2, $3, $4, $5, $5, $6, $5, $5)
"""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is measured."""

    rounds: int = 7
    seconds: float = 1.0


QUICK: Final = Effort(rounds=3, seconds=0.5)


@dataclass(frozen=True, slots=True)
class Subject:
    """Sessions of one length, of users with so many memories."""

    length: int
    memories: int

    @property
    def name(self) -> str:
        return f"{self.length} messages, {self.memories} memories"

    def sessions(self) -> list[tuple[str, str]]:
        """Ids, each with its user."""
        users = [f"user{self.memories}-{twin}" for twin in range(TWINS)]
        return [(f"talk{self.length}-{user}", user) for user in users]


SUBJECTS: Final = [Subject(length, number) for number in MEMORIES for length in LENGTHS]


def said(length: int, seed: int) -> list[str]:
    """What is said in turn, the user first and last; it ends with a question."""
    statements = sentences(31)[seed * 1_000 : seed * 1_000 + 1_000]
    asked = questions(seed, 1)[0]
    talk = [statements[place % len(statements)] for place in range(length - 1)]
    return [*talk, asked]


async def converse(cluster: Cluster) -> None:
    """Store the conversations, as appends would have."""
    counter = EstimatedTokens()
    owner = await asyncpg.connect(cluster.owner_dsn)
    try:
        for subject in SUBJECTS:
            for seed, (session_id, user_id) in enumerate(subject.sessions()):
                texts = said(subject.length - 1, seed)
                tokens = [message_tokens(counter, content=one) for one in texts]
                await owner.execute(
                    _SESSION, TENANT, session_id, user_id, AGENT, len(texts), sum(tokens)
                )
                await owner.execute(_MESSAGES, TENANT, session_id, user_id, AGENT, texts, tokens)
        await owner.execute("VACUUM ANALYZE")
    finally:
        await owner.close()


def requests(subject: Subject, key: str, body: Mapping[str, Any]) -> list[bytes]:
    return [
        post(f"/v1/sessions/{session_id}/context", body, key)
        for session_id, _ in subject.sessions()
    ]


async def transactions(owner: asyncpg.Connection) -> int:
    """How many PostgreSQL has finished in this database; each read of a context is one."""
    await owner.execute("SELECT pg_stat_force_next_flush()")
    value = await owner.fetchval(
        "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    )
    return int(value)


async def statements(
    cluster: Cluster, load: Child, served: Server, asked: Sequence[bytes]
) -> float:
    """Statements per request: of a burst of requests, less what the process does by itself."""
    owner = await asyncpg.connect(cluster.owner_dsn)
    try:
        rest = 2.5
        # Backends tell the statistics of what they have done after a second of rest.
        await asyncio.sleep(rest)
        before = await transactions(owner)
        many = [*asked] * 100
        await fire(load, served, many, callers=1, seconds=60, once=True)
        await asyncio.sleep(rest)
        return (await transactions(owner) - before) / len(many)
    finally:
        await owner.close()


async def in_turn(
    cluster: Cluster, load: Child, served: Server, callers: int, effort: Effort
) -> dict[str, Measured]:
    """Medians of the rounds, by subject; each is asked once per round."""
    asked = {one.name: requests(one, cluster.key, {}) for one in SUBJECTS}
    kept: dict[str, list[Measured]] = {name: [] for name in asked}
    for _ in range(effort.rounds):
        for name, each in asked.items():
            kept[name].append(
                await fire(load, served, each, callers=callers, seconds=effort.seconds)
            )
    return {name: median(rounds) for name, rounds in kept.items()}


def _reply(texts: Sequence[str], place: int) -> str:
    first = place // 2 * LONG
    return " ".join(texts[first : first + LONG])


def talks(messages: int, key: str) -> list[bytes]:
    """Appends of what a user said in sessions of `TALK` messages, long replies to short lines."""
    texts = sentences(41)
    requests = []
    for start in range(0, messages, TALK):
        said_here = [
            {
                "role": "assistant" if place % 2 else "user",
                "content": _reply(texts, place) if place % 2 else texts[place],
            }
            for place in range(start, min(start + TALK, messages))
        ]
        path = f"/v1/sessions/before{messages}-{start}/messages"
        requests.append(post(path, {"user_id": f"said{messages}", "messages": said_here}, key))
    return requests


async def excerpts(
    cluster: Cluster, load: Child, served: Server, effort: Effort
) -> dict[str, dict[str, Measured]]:
    """By how much was said before: contexts of a new session with excerpts and without, in turn."""
    found = {}
    for messages in SAID:
        appends = talks(messages, cluster.key)
        await fire(load, served, appends, callers=1, seconds=600, once=True)
        opened = {"session_id": f"asks{messages}", "user_id": f"said{messages}"}
        await fire(
            load, served, [post("/v1/sessions", opened, cluster.key)], callers=1, seconds=9,
            once=True,
        )  # fmt: skip
        asked = {
            name: [
                post(
                    f"/v1/sessions/asks{messages}/context",
                    {"query": query, "include": {"excerpts": name == "with"}},
                    cluster.key,
                )
                for query in questions(43, 8)
            ]
            for name in ("with", "without")
        }
        kept: dict[str, list[Measured]] = {name: [] for name in asked}
        for _ in range(effort.rounds):
            for name, each in asked.items():
                kept[name].append(await fire(load, served, each, callers=1, seconds=effort.seconds))
        found[str(messages)] = {name: median(rounds) for name, rounds in kept.items()}
    return found


async def measure(effort: Effort) -> dict[str, Any]:
    before = os.getloadavg()[0]
    async with open_cluster() as cluster:
        users = {user: one.memories for one in SUBJECTS for _, user in one.sessions()}
        await fill(cluster, users)
        await converse(cluster)
        async with child("load") as load, server("service", dsn=cluster.dsn) as served:
            await in_turn(cluster, load, served, 8, QUICK)
            by_callers = {
                str(callers): {
                    name: asdict(one)
                    for name, one in (await in_turn(cluster, load, served, callers, effort)).items()
                }
                for callers in CALLERS
            }
            off = {"include": {"memories": False, "corrections": False}}
            per_request = {
                "with memories": await statements(
                    cluster, load, served, requests(SUBJECTS[1], cluster.key, {})
                ),
                "without memories": await statements(
                    cluster, load, served, requests(SUBJECTS[1], cluster.key, off)
                ),
            }
            alone = {
                one.name: asdict(
                    await fire(
                        load, served, requests(one, cluster.key, off), callers=1,
                        seconds=2 * effort.seconds,
                    )
                )
                for one in SUBJECTS
            }  # fmt: skip
            shown = await excerpts(cluster, load, served, effort)
    return {
        "effort": asdict(effort),
        "contexts": by_callers,
        "without_memories": alone,
        "excerpts": {
            messages: {name: asdict(one) for name, one in each.items()}
            for messages, each in shown.items()
        },
        "statements": per_request,
        "machine": {
            "date": utc_now().isoformat(timespec="seconds"),
            "processors": os.cpu_count(),
            "load_before": before,
            "load_after": os.getloadavg()[0],
        },
    }


HEAD: Final = """
# A context by the length of its session

{date}, {processors} processors shared by client, service and database; load of the machine \
{load_before:.1f} before and {load_after:.1f} after. Sessions that were never compacted, asked \
for their context in turn, {rounds} rounds of {seconds:g} s; window budget 4,000 tokens, memory \
budget 2,000. Written by `python -m benchmarks.context`.

**Cost.** Of a session of n messages at most b / 4 + 1 of the newest are read, by the index of \
the session, where b is the window's budget in tokens and 4 what a message takes at least: O(b), \
independent of n. A session of \
10 messages shows all of them and longer ones as many as fill the budget, some 137; from there \
nothing grows with n. Of m memories every one is rated, in one scan of the user's bucket: O(m). \
Blocks, summaries and working state have limits of their own.

**Statements** per request, with the look-up of the key, as PostgreSQL counted them: \
{with_memories:.2f} with memories, {without:.2f} without (the goal is at most 4; the rest are \
counts written in the background).
"""


def table(title: str, rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    lines = [
        f"## {title}", "",
        "| messages | memories | p50 ms | p95 ms | requests/s | CPU ms of the process |"
        " p50 / that of 1,000 messages |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]  # fmt: skip
    for subject in SUBJECTS:
        one = rows[subject.name]
        filled = rows[Subject(LENGTHS[1], subject.memories).name]["p50_ms"]
        lines.append(
            f"| {subject.length:,} | {subject.memories:,} | {one['p50_ms']:.1f} | "
            f"{one['p95_ms']:.1f} | {one['per_second']:.0f} | {one['server_cpu_ms']:.1f} | "
            f"{one['p50_ms'] / filled:.2f} |"
        )
    return [*lines, ""]


def report(result: Mapping[str, Any]) -> str:
    head = HEAD.format(
        **result["machine"],
        **result["effort"],
        with_memories=result["statements"]["with memories"],
        without=result["statements"]["without memories"],
    )
    lines = [head.strip(), ""]
    for callers, rows in result["contexts"].items():
        lines += table(f"{callers} caller{'s' if callers != '1' else ''}", rows)
    lines += table(
        "Without memories, 1 caller: the first statement alone", result["without_memories"]
    )
    lines += [
        "## Excerpts: a new session of a user who said so much in others", "",
        "Half of the messages are replies of some 200 words. One caller.", "",
        "| messages before | p50 ms with excerpts | without | ratio |",
        "|--:|--:|--:|--:|",
    ]  # fmt: skip
    for messages, each in result["excerpts"].items():
        with_them, without = each["with"]["p50_ms"], each["without"]["p50_ms"]
        lines.append(
            f"| {int(messages):,} | {with_them:.1f} | {without:.1f} | {with_them / without:.1f} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few short rounds")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/context.json"))
    given = parser.parse_args()
    result = asyncio.run(measure(QUICK if given.quick else Effort()))
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    given.out.with_suffix(".md").write_text(report(result), encoding="utf-8")
    print(report(result))


if __name__ == "__main__":
    main()
