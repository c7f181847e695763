"""How `kemem eval` has questions answered and graded: what is sent, kept, priced and reported."""

import json
from datetime import UTC, datetime

import pytest
from typer import Exit

from app.evaluation.answer_measurement import (
    answer_report_of,
    confirm,
    grade_readings,
    price_of,
    print_answer_report,
)
from app.evaluation.conversation_measurement import Gathered
from app.evaluation.conversation_run import MeasuredContext
from app.evaluation.dataset import NEVER_SAID, Dataset, DatasetUnit, Question, Store
from app.evaluation.kept_answers import KeptAnswers
from app.evaluation.reader import grader_prompt, reader_prompt, readings_of, rendered, score_of
from app.evaluation.run import AskedQuestion
from app.language.llm.chat import ChatAnswer
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import ModelUse

UNITS = (
    DatasetUnit("1", "I live in Munich.", "monday", "Ana", datetime(2024, 5, 13, tzinfo=UTC)),
    DatasetUnit("2", "Noted. " * 200, "monday", role="assistant"),
)
WHERE = Question("Where?", frozenset({"1"}), "place", rubric=("says Munich", "says since May"))
WHY = Question("Why?", frozenset(), "never", answer=NEVER_SAID)
STORE = Store("ana", UNITS, (WHERE, WHY))
DATASET = Dataset("one", (STORE,))


def gathered(problem=None):
    """What a service gave: one context and one hit for each question."""
    shown = [
        MeasuredContext(STORE, one, frozenset({"1"}), "She lives in Munich.", 9, 9, 1.0, problem)
        for one in STORE.questions
    ]
    asked = [
        AskedQuestion(STORE, one, [frozenset({"1"})], ["…"], 1, 1.0) for one in STORE.questions
    ]
    return Gathered(dataset=DATASET, evaluation=None, asked=asked, contexts={2000: shown})


class Chat:
    """A model that answers as `answers` say, by the name of the schema; keeps what it was asked."""

    name = "openai/m"
    model = "m"

    def __init__(self, **answers):
        self.answers = {
            "answer": lambda _: {"answer": "In Munich"},
            "grades": lambda _: {"grades": [{"point": 2, "score": 0}, {"point": 1, "score": 1}]},
            "verdict": lambda _: {"right": False},
        } | answers
        self.asked = []

    async def answer(self, system, user, *, schema, schema_name, max_output_tokens, opening=None):
        self.asked.append((schema_name, system, user))
        said = self.answers[schema_name](user)
        if isinstance(said, Exception):
            raise said
        return ChatAnswer(said, ModelUse(1, 100, 10, 5))

    def count(self, name):
        return sum(one == name for one, _, _ in self.asked)


def kept(chat, folder):
    return KeptAnswers(chat, folder)


async def graded(chat, folder, variants=("context", "nothing"), source=None):
    readings = readings_of(source or gathered(), variants, 500)
    return await grade_readings(readings, kept(chat, folder), kept(chat, folder), 2)


def test_each_variant_gives_the_reader_what_it_is_named_for():
    readings = readings_of(gathered(), ("context", "messages", "whole", "nothing"), 5000)
    first = {one.variant: one.prompt.user for one in readings if one.question is WHERE}
    assert list(first) == ["context 2000", "messages", "whole", "nothing"]
    assert "She lives in Munich." in first["context 2000"]
    said = "[2024-05-13 00:00, session monday] Ana: I live in Munich."
    assert said in first["messages"]
    assert "Noted." not in first["messages"]
    assert f"{said}\n\n[no date, session monday] assistant: Noted." in first["whole"]
    assert first["nothing"] == "# What was said\n(nothing)\n\n# Question\nWhere?"
    # No label, no reference and no rubric.
    assert not any("since May" in user for user in first.values())


def test_a_question_is_asked_at_its_time():
    asked = Question("Where?", frozenset(), moment=datetime(2024, 6, 1, 9, tzinfo=UTC))
    assert "# Question (asked on 2024-06-01 09:00)\nWhere?" in reader_prompt(asked, "").user


def test_a_conversation_that_does_not_fit_is_not_asked():
    whole = readings_of(gathered(), ("whole",), 300)
    assert [(one.prompt, one.problem) for one in whole] == [(None, "too_long")] * 2
    assert [one.problem for one in readings_of(gathered("no"), ("context",), 300)] == ["no"] * 2
    assert rendered(()) == ""


async def test_answers_are_graded_by_rubric_or_reference(tmp_path, capsys):
    chat = Chat()
    held = await graded(chat, tmp_path)

    assert [one.score for one in held] == [0.5, 0.0, 0.5, 0.0]
    report = {"reader": "r", "judge": "j"} | answer_report_of(DATASET, held)
    total = report["variants"]["context 2000"]["total"]
    assert (total["score"], total["graded"], total["questions"]) == (0.25, 2, 2)
    assert report["variants"]["nothing"]["categories"]["place"]["score"] == 0.5
    assert report["questions"][0]["answer"] == "In Munich"
    print_answer_report(report)
    assert "25.0 (0.0 to 50.0)" in capsys.readouterr().out


async def test_the_grader_does_not_see_what_the_reader_was_given(tmp_path):
    chat = Chat()
    await graded(chat, tmp_path)

    assert chat.count("answer") == 4
    # The same answer with and without a context is graded once.
    assert (chat.count("grades"), chat.count("verdict")) == (1, 1)
    rubric = json.loads(next(user for name, _, user in chat.asked if name == "grades"))
    assert rubric == {
        "question": "Where?", "rubric": ["says Munich", "says since May"], "answer": "In Munich",
    }  # fmt: skip
    reference = json.loads(next(user for name, _, user in chat.asked if name == "verdict"))
    assert reference == {"question": "Why?", "reference": NEVER_SAID, "answer": "In Munich"}


async def test_what_was_answered_is_not_asked_again(tmp_path):
    first = await graded(Chat(), tmp_path / "kept")
    again = Chat()
    held = await graded(again, tmp_path / "kept")
    assert again.asked == []
    assert [one.score for one in held] == [one.score for one in first]
    # Another model has said nothing yet.
    other = Chat()
    other.name = "openai/other"
    await graded(other, tmp_path / "kept")
    assert other.count("answer") == 4


async def test_what_is_kept_and_is_no_answer_is_asked_again(tmp_path):
    await graded(Chat(), tmp_path)
    for file, spoilt in zip(sorted(tmp_path.iterdir()), ("", "[]", "{}", '{"x": 1}'), strict=False):
        file.write_text(spoilt)
    again = Chat()
    assert [one.score for one in await graded(again, tmp_path)] == [0.5, 0.0, 0.5, 0.0]
    assert len(again.asked) == 4


async def test_a_run_is_priced_by_what_is_missing(tmp_path):
    readings = readings_of(gathered(), ("context", "nothing"), 500)
    reader = judge = kept(Chat(), tmp_path)
    price = price_of(readings, reader, judge)
    assert price["reader"]["calls"] == price["judge"]["calls"] == 4
    assert price["reader"]["tokens"] == sum(one.prompt.tokens for one in readings)
    await graded(Chat(), tmp_path, variants=("context",))
    assert price_of(readings, reader, judge)["reader"]["calls"] == 2
    await graded(Chat(), tmp_path)
    assert price_of(readings, reader, judge) == {
        "reader": {"calls": 0, "tokens": 0}, "judge": {"calls": 0, "tokens": 0},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({"answer": lambda _: {}}, "reader: unreadable"),
        ({"answer": lambda _: {"answer": " "}}, "reader: unreadable"),
        ({"answer": lambda _: ModelUnavailableError("timeout")}, "reader: timeout"),
        (
            {"answer": lambda _: ModelUnavailableError("bad_answer", fault="truncated")},
            "reader: truncated",
        ),
        ({"grades": lambda _: ModelUnavailableError("rate_limited")}, "judge: rate_limited"),
    ],
)
async def test_what_failed_is_counted_and_not_taken_for_wrong(answers, problem, tmp_path, capsys):
    held = await graded(Chat(**answers), tmp_path, variants=("context",))
    [where] = [one for one in held if one.reading.question is WHERE]
    assert (where.score, where.problem) == (None, problem)
    report = answer_report_of(DATASET, held)["variants"]["context 2000"]
    assert report["categories"]["place"]["score"] is None
    assert report["categories"]["place"]["graded"] == 0
    assert report["problems"][problem] >= 1
    print_answer_report({"reader": "r", "judge": "j", "variants": {"context 2000": report}})
    assert f"answers were not graded ({problem})" in capsys.readouterr().out
    # A failure is no answer: nothing is kept of it, and the next run asks again.
    failed = sum(one.problem == problem for one in held)
    missing = 2 * failed if problem.startswith("reader") else failed
    assert len(list(tmp_path.iterdir())) == 2 * len(held) - missing
    assert (await graded(Chat(), tmp_path, variants=("context",)))[0].score == 0.5


async def test_after_a_failure_that_all_would_have_nobody_is_asked(tmp_path):
    chat = Chat(answer=lambda _: ModelUnavailableError("authentication"))
    readings = readings_of(gathered(), ("context", "nothing"), 500)
    held = await grade_readings(readings, kept(chat, tmp_path), kept(chat, tmp_path), 1)
    assert {one.problem for one in held} == {"reader: authentication"}
    assert chat.count("answer") == 1


@pytest.mark.parametrize(
    "grades",
    [
        None,
        [],
        [1, 2],
        [{"point": 1, "score": 1}],
        [{"point": 1, "score": 1}, {"point": 1, "score": 1}],
        [{"point": 1, "score": 1}, {"point": 3, "score": 1}],
        [{"point": 1, "score": 1}, {"point": 2, "score": 0.7}],
        [{"point": 1, "score": 1}, {"point": 2, "score": True}],
        [{"point": 1, "score": 1}, {"point": 2}],
        [{"point": True, "score": 1}, {"point": 2, "score": 1}],
    ],
)
def test_grades_are_one_for_each_point(grades):
    assert not grader_prompt(WHERE, "Munich").usable({"grades": grades})


def test_grades_are_worth_their_mean():
    prompt = grader_prompt(WHERE, "Munich")
    given = {"grades": [{"point": 2, "score": 0.5}, {"point": 1, "score": 1.0}]}
    assert prompt.usable(given)
    assert score_of(given) == 0.75
    assert [score_of({"right": right}) for right in (True, False)] == [1.0, 0.0]
    assert not grader_prompt(WHY, "No").usable({"right": "yes"})


def test_nobody_is_asked_to_pay_for_nothing(capsys):
    nothing = {"reader": {"calls": 0, "tokens": 0}, "judge": {"calls": 0, "tokens": 0}}
    confirm(nothing, yes=False)
    dear = {"reader": {"calls": 2, "tokens": 9}, "judge": {"calls": 2, "tokens": 9}}
    confirm(dear, yes=True)
    # pytest gives no terminal.
    with pytest.raises(Exit):
        confirm(dear, yes=False)
    assert "give --yes, or --dry-run" in capsys.readouterr().err
