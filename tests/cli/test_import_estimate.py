"""What an import costs before it is spent, and when its budget is reached."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from app.cli.conversation_cost import Estimate, estimate_of
from app.cli.conversation_messages import FileConversation, FileMessage
from app.cli.conversation_plan import ImportBudget, ImportSpending
from app.language.llm.tokens import EstimatedTokens
from app.memory.extraction.session_reader import MESSAGES
from kemem.jobs import ModelPrice, UsageOfDay, UsedModel, UsedModels

TIME = datetime(2024, 5, 2, tzinfo=UTC)
READER = UsedModel(model="m", price=ModelPrice(input=1.0, output=2.0))
READING = UsedModels(extraction=READER, reconciliation=READER)


def talk(said: Sequence[str], role: str = "user", user_id: str | None = None) -> FileConversation:
    messages = [FileMessage(role, one, TIME, key=str(place)) for place, one in enumerate(said)]
    return FileConversation("s", "file", user_id, messages)


async def estimated(
    *conversations: FileConversation,
    models: UsedModels = READING,
    window_tokens: float = 10**9,
    profile_seconds: int = 600,
) -> Estimate:
    return await estimate_of(
        conversations,
        models,
        EstimatedTokens(),
        tags=(),
        window_tokens=window_tokens,
        profile_interval=timedelta(seconds=profile_seconds),
    )


@pytest.mark.parametrize(
    ("messages", "runs"), [(MESSAGES - 1, 1), (MESSAGES, 1), (MESSAGES + 1, 2)]
)
async def test_each_run_is_one_extraction_and_one_reconciliation(messages: int, runs: int) -> None:
    found = await estimated(talk(["I live in Lisbon."] * messages))

    assert found.by_work["extraction"].calls == runs
    assert found.by_work["reconciliation"].calls == runs
    assert found.total.calls == 2 * runs


async def test_tokens_grow_with_what_was_said() -> None:
    short = (await estimated(talk(["I live in Lisbon."]))).by_work["extraction"]
    long = (await estimated(talk(["I live in Lisbon. " * 20]))).by_work["extraction"]
    chinese = (await estimated(talk(["我住在里斯本。" * 20]))).by_work["extraction"]

    counter = EstimatedTokens()
    said = counter.count("I live in Lisbon. " * 20) - counter.count("I live in Lisbon.")
    assert long.input_tokens - short.input_tokens == pytest.approx(said, abs=5)
    assert chinese.input_tokens > long.input_tokens
    # Instructions and schema.
    assert short.input_tokens > 1_000


@pytest.mark.parametrize(
    ("conversation", "models"),
    [
        (talk(["Lisbon is large."], role="assistant"), READING),
        (talk(["I live in Lisbon."]), UsedModels()),
    ],
)
async def test_nothing_is_asked_of_who_has_nothing_to_read(
    conversation: FileConversation, models: UsedModels
) -> None:
    assert (await estimated(conversation, models=models)).by_work == {}


async def test_acknowledgements_are_read_and_tell_nothing() -> None:
    found = await estimated(talk(["ok", "thanks"]))

    assert list(found.by_work) == ["extraction"]


@pytest.mark.parametrize(("above", "summaries"), [(1, 0), (0, 1), (-1, 1)])
async def test_a_conversation_that_fills_the_window_is_summarised(
    above: int, summaries: int
) -> None:
    conversation = talk(["I live in Lisbon."] * 10)
    models = UsedModels(summary=READER)
    whole = await estimated(conversation, models=models, window_tokens=1)
    tokens = whole.by_work["summary"].input_tokens

    found = await estimated(conversation, models=models, window_tokens=tokens + above)

    assert found.total.calls == summaries


async def test_profiles_are_derived_once_in_an_interval_and_for_each_user() -> None:
    models = UsedModels(profile=READER)
    ana = [talk(["I live in Lisbon."], user_id="ana") for _ in range(3)]
    ben = talk(["I live in Porto."], user_id="ben")

    one = await estimated(*ana, models=models)
    two = await estimated(*ana, ben, models=models)
    # 120 calls of 5 seconds.
    many = [
        await estimated(*(ana * 20), models=models, profile_seconds=seconds)
        for seconds in (0, 599, 600, 601, 300)
    ]

    assert (one.total.calls, two.total.calls) == (1, 2)
    assert [each.total.calls for each in many] == [60, 2, 2, 1, 3]


async def test_what_is_remembered_is_read_too_up_to_a_bound() -> None:
    several = [talk(["I live in Lisbon."] * 10) for _ in range(20)]
    totals = [(await estimated(*several[:count])).by_work for count in range(1, 21)]

    for work in ("extraction", "reconciliation"):
        read = [total[work].input_tokens for total in totals]
        added = [after - before for before, after in pairwise(read)]
        assert added[0] > read[0]
        assert max(added) - added[-1] <= 1
        assert max(added[-3:]) - min(added[-3:]) <= 1


async def test_money_needs_the_price_of_every_model() -> None:
    found = await estimated(talk(["I live in Lisbon."]))
    total = found.total

    told = found.money(READING)
    untold = found.money(UsedModels(extraction=READER, reconciliation=UsedModel(model="n")))

    assert told == pytest.approx((total.input_tokens + 2 * total.output_tokens) / 1_000_000)
    assert untold is None


@pytest.mark.parametrize(
    ("budget", "name"),
    [
        (ImportBudget(calls=10), "calls"),
        (ImportBudget(tokens=10), "tokens"),
        (ImportBudget(money=10), "money"),
    ],
)
def test_a_budget_is_reached_at_its_limit(budget: ImportBudget, name: str) -> None:
    def reached(used: int) -> bool:
        values: dict[str, Any] = {name: used}
        return budget.reached(ImportSpending(**values)) is not None

    assert [reached(used) for used in (9, 10, 11)] == [False, True, True]
    assert bool(budget)


def test_no_budget_is_never_reached() -> None:
    assert not ImportBudget()
    assert ImportBudget().reached(ImportSpending(10**9, 10**12, 10**6)) is None


def test_embeddings_cost_money_and_no_calls() -> None:
    day = date(2026, 1, 1)
    rows = [
        UsageOfDay(
            day=day, operation="extract", calls=2, input_tokens=30, output_tokens=4, cost=0.5
        ),
        UsageOfDay(day=day, operation="embed", calls=7, input_tokens=70, cost=0.25),
        UsageOfDay(day=day, operation="rerank", calls=7),
    ]

    assert ImportSpending.of(rows) == ImportSpending(2, 34, 0.75)
    assert ImportSpending.of(rows) - ImportSpending(1, 4, 0.25) == ImportSpending(1, 30, 0.5)
