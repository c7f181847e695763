"""What extraction costs: `python -m benchmarks.extraction_cost [PATH] [--talks N] [--out F]`.

Conversations of LoCoMo are appended turn by turn, as people write: quickly, with silences between.
The benchmark does not wait for the silences: the service's own handler runs the jobs that would
have become due. The model is scripted and its calls are counted as they are sent; a token is four
characters. For comparison: the same service read after every message, and one call per message
with the same prompt and nothing else.
"""

import argparse
import asyncio
import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import asyncpg

from app.builders.factory import Factory
from app.conversation.messages.append_service import AppendService
from app.conversation.messages.schemas import MessageAppend
from app.conversation.messages.service import WindowRules
from app.conversation.sessions.jobs import CAP, EXTRACT
from app.evaluation.locomo import LocomoConversation, Sitting, read_conversation
from app.identity.tenants.access import Access, Principal
from app.language.llm.chat import ChatAnswer, JsonSchema, Opening
from app.language.llm.extractor import ConversationTurn, ExtractionRequest, ModelUse
from app.language.llm.model_catalogue import ExtractionModel, ModelCatalogue
from app.language.llm.model_extractor import ModelExtractor
from app.language.llm.model_reconciler import ModelReconciler
from app.memory.extraction.jobs import SessionJobs
from app.platform.jobs.dispatch import Dispatch
from app.platform.jobs.failures import DeferJobError, judge
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from benchmarks.database import AGENT, TENANT, open_cluster
from benchmarks.publishing import publish

DATA = Path("../shared/data/locomo/locomo10.json")
CHARACTERS_PER_TOKEN = 4
WORTH_SAYING = 60
"""A message of the user of at least this length holds one fact, for the scripted model."""

SILENCE = Settings.model_fields["debounce_seconds"].default
SHORT_GAP = (3.0, 25.0)
LONG_GAP = (35.0, 240.0)
LONG_SHARE = 0.1
"""How people write: one gap in ten is longer than the silence that is waited for."""


@dataclass(slots=True)
class Spent:
    """Calls and tokens, by question."""

    calls: dict[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class ScriptedChat:
    """Finds one fact in each longer message of the user, and holds every fact for new."""

    name = "scripted/locomo"
    model = "locomo"

    def __init__(self) -> None:
        self.spent = Spent()

    async def answer(
        self,
        system: str,
        user: str,
        *,
        schema: JsonSchema,
        schema_name: str,
        max_output_tokens: int,
        opening: Opening | None = None,
    ) -> ChatAnswer:
        """An answer of the length that a real one has."""
        del max_output_tokens, opening
        lines = [json.loads(line) for line in user.split("\n")]
        data = {"memories": _facts, "decisions": _decisions}[schema_name](lines)
        sent = len(system) + len(user) + len(json.dumps(schema))
        use = ModelUse(
            1,
            math.ceil(sent / CHARACTERS_PER_TOKEN),
            math.ceil(len(json.dumps(data, ensure_ascii=False)) / CHARACTERS_PER_TOKEN),
        )
        spent = self.spent
        spent.calls[schema_name] = spent.calls.get(schema_name, 0) + 1
        spent.input_tokens += use.input_tokens
        spent.output_tokens += use.output_tokens
        return ChatAnswer(data, use)


def _facts(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    entries = [
        {
            "content": line["text"][:200],
            "type": "fact",
            "confidence": 0.95,
            "evidence": [line["id"]],
            "scope": "user",
            "attribute": None,
            "valid_from": None,
            "valid_to": None,
            "source_error": None,
            "retracts": False,
        }
        for line in lines
        if line["kind"] == "message" and _worth_saying(line["role"], line["text"])
    ]
    return {"reflection": "The user told of their days. The rest was context.", "memories": entries}


def _worth_saying(role: str, text: str) -> bool:
    return role == "user" and len(text) >= WORTH_SAYING


def _decisions(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "decisions": [
            {
                "statement": line["id"],
                "reason": "It tells of another day.",
                "event": "ADD",
                "memories": [],
                "content": None,
            }
            for line in lines
            if line["kind"] == "statement"
        ]
    }


@dataclass(frozen=True, slots=True)
class Desk:
    """The service in the hands of the benchmark, with the scripted model in it."""

    runtime: Runtime
    owner: asyncpg.Connection
    messages: AppendService
    jobs: SessionJobs
    dispatch: Dispatch
    chat: ScriptedChat

    @property
    def principal(self) -> Principal:
        return Principal(Access(TENANT), "bench", frozenset({"write"}), {}, ())

    async def append(self, user_id: str, session_id: str, role: str, text: str) -> float | None:
        """Append one message; seconds until the session is read, None when nothing is owed."""
        body = MessageAppend.model_validate(
            {
                "user_id": user_id,
                "agent_id": AGENT,
                "messages": [{"role": role, "content": text}],
            }
        )
        answer = await self.messages.append(self.principal, session_id, body)
        due = answer.extraction.due_at
        return None if due is None else (due - datetime.now(UTC)).total_seconds()

    async def work_off(self) -> bool:
        """Read what is owed, as if its time had come; False when a limit put it off."""
        while True:
            await self.owner.execute(
                "UPDATE jobs SET due_at = now() WHERE status = 'pending' AND kind = $1", EXTRACT
            )
            found = await self.dispatch.claim(1, {})
            claimed = await self.dispatch.read(found.claims)
            if not claimed:
                return True
            try:
                await self.jobs.extract(claimed[0])
            except DeferJobError as error:
                await self._put_off(claimed[0], error)
                return False

    async def _put_off(self, job: ClaimedJob, error: DeferJobError) -> None:
        verdict = judge(error, attempts=job.attempts, max_attempts=job.max_attempts, spread=0)
        async with self.runtime.database.begin(TENANT) as db:
            await JobRepository(db, TENANT).record(job, verdict)

    async def next_day(self) -> None:
        """What counts in a rolling day is over."""
        await self.owner.execute(
            "UPDATE extraction_runs SET create_time = create_time - interval '25 hours'"
        )


@asynccontextmanager
async def open_desk(most_a_day: int) -> AsyncIterator[Desk]:
    async with open_cluster() as cluster:
        settings = Settings(_env_file=None, max_extractions=most_a_day)
        async with open_runtime(settings, cluster.dsn) as runtime:
            chat = ScriptedChat()
            model = ExtractionModel(ModelExtractor(chat), ModelReconciler(chat))
            built = Factory(runtime).get(SessionJobs)
            # No setting names a model that is no endpoint.
            jobs = SessionJobs(
                runtime.work,
                built._pipeline,  # noqa: SLF001
                ModelCatalogue("rules", rules=model),
                built._limits,  # noqa: SLF001
                runtime.capture.tags,
                runtime.now,
            )
            dispatch = Dispatch(
                runtime.database,
                kinds=[EXTRACT],
                worker="bench",
                lease=timedelta(minutes=10),
                per_tenant=1,
            )
            messages = AppendService(
                runtime.work,
                runtime.capture,
                runtime.indexer,
                WindowRules(runtime.counter, runtime.window_policy, runtime.checkpoint_store),
                runtime.now,
                runtime.processing,
                auto_create=True,
            )
            owner = await asyncpg.connect(cluster.owner_dsn)
            try:
                yield Desk(runtime, owner, messages, jobs, dispatch, chat)
            finally:
                await owner.close()


async def in_bursts(desk: Desk, talk: LocomoConversation, random: Random) -> None:
    """Every sitting turn by turn; a reading happens in the first gap that outlasts its wait."""
    for sitting in talk.sittings:
        session_id = f"{talk.name}-{sitting.number}"
        clock, waiting_since, due = 0.0, None, math.inf
        for turn in sitting.turns:
            clock += random.uniform(*(LONG_GAP if random.random() < LONG_SHARE else SHORT_GAP))
            if clock >= due:
                put_off = not await desk.work_off()
                waiting_since, due = (waiting_since, math.inf) if put_off else (None, math.inf)
            wait = await desk.append(talk.user_id, session_id, turn.role, turn.text)
            if wait is not None:
                waiting_since = clock if waiting_since is None else waiting_since
                due = min(clock + wait, waiting_since + CAP * SILENCE)
        if not await desk.work_off():
            await desk.next_day()
            await desk.work_off()


async def after_every_message(desk: Desk, talk: LocomoConversation) -> None:
    for sitting in talk.sittings:
        for turn in sitting.turns:
            session_id = f"{talk.name}-{sitting.number}"
            await desk.append(talk.user_id, session_id, turn.role, turn.text)
            await desk.work_off()


async def one_call_each(sittings: Sequence[Sitting]) -> Spent:
    """The same prompt for each message alone; nothing is compared afterwards."""
    chat = ScriptedChat()
    extractor = ModelExtractor(chat)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for sitting in sittings:
        for number, turn in enumerate(sitting.turns):
            role: Any = turn.role
            said = ConversationTurn(f"m{number}", role, turn.text, noon)
            await extractor.extract(ExtractionRequest((said,)))
    return chat.spent


async def measure_all(talks: Sequence[LocomoConversation]) -> dict[str, Any]:
    found: dict[str, Spent] = {}
    for name, most in (("bursts", 1000), ("bursts_as_configured", 3)):
        async with open_desk(most) as desk:
            for place, talk in enumerate(talks):
                await in_bursts(desk, talk, Random(place))
            found[name] = replace(desk.chat.spent)
    async with open_desk(1000) as desk:
        for talk in talks:
            await after_every_message(desk, talk)
        found["every_message"] = replace(desk.chat.spent)
    sittings = [sitting for talk in talks for sitting in talk.sittings]
    found["one_call_each"] = await one_call_each(sittings)
    turns = [turn for sitting in sittings for turn in sitting.turns]
    return {
        "conversations": [talk.name for talk in talks],
        "messages": len(turns),
        "facts": sum(_worth_saying(turn.role, turn.text) for turn in turns),
        "spent": {name: asdict(one) | {"tokens": one.tokens} for name, one in found.items()},
    }


LABELS = {
    "one_call_each": "one call per message, nothing compared",
    "every_message": "KeMem, read after every message",
    "bursts": "KeMem, read when it falls silent",
    "bursts_as_configured": "KeMem, the same with at most 3 runs per session and day",
}


def markdown(result: dict[str, Any]) -> str:
    hundred = result["messages"] / 100
    reference = result["spent"]["one_call_each"]
    lines = [
        "# What extraction costs",
        "",
        f"{result['messages']:,} messages of LoCoMo ({', '.join(result['conversations'])}), "
        "appended turn by turn; one gap in ten outlasts the silence of "
        f"{SILENCE} s. A scripted model finds one fact in each message of the user of at least "
        f"{WORTH_SAYING} characters ({result['facts']:,} in all) and holds each for new. Tokens "
        f"are characters of what was sent (instructions, data, schema) and answered, by "
        f"{CHARACTERS_PER_TOKEN}. Figures per 100 messages; the ratio is to one call per message.",
        "",
        "| | calls | of them extract | reconcile | input tokens | output tokens "
        "| calls, ratio | tokens, ratio |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, label in LABELS.items():
        one = result["spent"][name]
        calls, of_reference = sum(one["calls"].values()), sum(reference["calls"].values())
        by_question = " | ".join(
            f"{one['calls'].get(question, 0) / hundred:.1f}"
            for question in ("memories", "decisions")
        )
        lines.append(
            f"| {label} | {calls / hundred:.1f} | {by_question} "
            f"| {one['input_tokens'] / hundred:,.0f} | {one['output_tokens'] / hundred:,.0f} "
            f"| {calls / of_reference:.2f} | {one['tokens'] / reference['tokens']:.2f} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=DATA, help="locomo10.json")
    parser.add_argument("--talks", type=int, default=2, help="how many conversations are read")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/extraction_cost.json"))
    given = parser.parse_args()
    if not given.path.exists():
        parser.error(f"{given.path} does not exist: give the path of locomo10.json")
    talks = [read_conversation(given.path, number) for number in range(given.talks)]
    result = asyncio.run(measure_all(talks))
    publish(result, markdown(result), given.out)


if __name__ == "__main__":
    main()
