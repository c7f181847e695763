"""LongMemEval and BEAM as `kemem eval` reads them: their shapes, with words of our own."""

import json
from datetime import UTC, datetime

import pytest

from app.errors import ConfigurationError
from app.evaluation.dataset import DatasetUnit, Question
from app.evaluation.measurement import describe_run, read_given
from app.evaluation.published_datasets import read_beam, read_longmemeval
from kemem.address import Service

ASKED = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "Which kite do I fly?",
    "answer": 3,
    "question_date": "2023/06/01 (Thu) 10:00",
    "haystack_session_ids": ["s9", "s9"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "some day"],
    "haystack_sessions": [
        [
            {"role": "user", "content": "I fly kite number 3.", "has_answer": True},
            {"role": "assistant", "content": "Good choice.", "has_answer": False},
        ],
        [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": " "}],
    ],
    "answer_session_ids": ["s9"],
}


@pytest.fixture
def write(tmp_path):
    def written(document, *path):
        file = tmp_path.joinpath(*path) if path else tmp_path / "set.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document), encoding="utf-8")
        return file

    return written


def test_longmemeval_is_read_as_it_is(write):
    never = ASKED | {"question_id": "q2_abs", "answer": "It was not said.", "haystack_dates": ["?"]}
    never["haystack_sessions"] = [[{"role": "user", "content": "Hello"}]]
    found = read_longmemeval(write([ASKED, never]))

    said_at, asked_at = (
        datetime(2023, 5, 20, 2, 21, tzinfo=UTC),
        datetime(2023, 6, 1, 10, tzinfo=UTC),
    )
    first, second = found.stores
    assert (first.store_id, second.store_id) == ("q1", "q2_abs")
    assert first.units == (
        DatasetUnit("1:0", "I fly kite number 3.", "1", None, said_at, "user"),
        DatasetUnit("1:1", "Good choice.", "1", None, said_at, "assistant"),
        DatasetUnit("2:0", "Hello", "2", None, None, "user"),
    )
    assert first.questions == (
        Question(
            "Which kite do I fly?", frozenset({"1:0"}), "single-session-user", asked_at, answer="3"
        ),
    )
    [abstention] = second.unlabelled
    assert (abstention.category, abstention.answer) == ("abstention", "It was not said.")
    assert (found.without_gold, found.unread_dates) == (1, 2)


@pytest.mark.parametrize(
    "other", [{}, [], [1], [{}], {"stores": []}, [ASKED | {"haystack_dates": []}]]
)
def test_what_is_no_longmemeval_is_refused(write, other):
    with pytest.raises(ConfigurationError, match=r"set\.json"):
        read_longmemeval(write(other))


def chat(*texts, batch=1):
    """A batch of one turn; ids count from 10 times its number."""
    return {
        "batch_number": batch,
        "turns": [
            [
                {
                    "role": ("user", "assistant")[place % 2],
                    "id": 10 * batch + place,
                    "content": text,
                }
                | ({"time_anchor": "March-15-2024"} if place == 0 else {})
                for place, text in enumerate(texts)
            ]
        ],
    }


PROBES = {
    "abstention": [{"question": "Why?", "ideal_response": "Nothing.", "rubric": ["nothing said"]}],
    "event_ordering": [
        {"question": "In what order?", "answer": "a, b", "source_chat_ids": [10, 20, 99]}
    ],
    "knowledge_update": [
        {
            "question": "How long is it now?",
            "ideal_answer": "Six metres",
            "source_chat_ids": {"original_info": [10], "updated_info": [20]},
            "rubric": ["LLM response should state: six metres"],
        }
    ],
}


@pytest.fixture
def beam(write, tmp_path):
    for name in ("2", "10"):
        batches = [chat("The kite is long. ->-> 1,1", "I see."), chat("It is longer.", batch=2)]
        write(batches, "100K", name, "chat.json")
        write(PROBES, "100K", name, "probing_questions", "probing_questions.json")
    write({}, "100K", "notes", "topic.json")
    return tmp_path / "100K"


def test_beam_is_read_from_the_folders_of_its_repository(beam):
    found = read_beam(beam)

    assert [store.store_id for store in found.stores] == ["100K-2", "100K-10"]
    day = datetime(2024, 3, 15, tzinfo=UTC)
    store = found.stores[0]
    assert store.units == (
        DatasetUnit("10", "The kite is long.", "1", None, day, "user"),
        DatasetUnit("11", "I see.", "1", None, day, "assistant"),
        DatasetUnit("20", "It is longer.", "2", None, day, "user"),
    )
    both = frozenset({"10", "20"})
    assert store.questions == (
        Question("In what order?", both, "event_ordering", answer="a, b"),
        Question(
            "How long is it now?",
            both,
            "knowledge_update",
            answer="Six metres",
            rubric=("LLM response should state: six metres",),
        ),
    )
    assert store.unlabelled == (
        Question("Why?", frozenset(), "abstention", answer="Nothing.", rubric=("nothing said",)),
    )
    assert (found.unknown_gold, found.without_gold) == (2, 2)


def test_a_single_chat_is_read_and_the_one_cut_to_its_size_is_preferred(beam, write):
    write([chat("Cut.")], "100K", "2", "chat_trunecated.json")
    [store] = read_beam(beam / "2").stores
    assert [unit.text for unit in store.units] == ["Cut."]


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ({"plan": []}, "is no chat in the layout of BEAM"),
        ([{"batch_number": 1}], "'turns'"),
        ([chat("a"), chat("b")], "the id of a message stands there twice"),
    ],
)
def test_a_chat_of_another_shape_is_named(beam, write, batches, words):
    write(batches, "100K", "10", "chat.json")
    with pytest.raises(ConfigurationError, match="10") as refused:
        read_beam(beam)
    assert words in str(refused.value)


def test_a_folder_without_chats_and_a_chat_without_questions_are_refused(beam):
    with pytest.raises(ConfigurationError, match=r"no folder in it has a chat\.json"):
        read_beam(beam / "notes")
    (beam / "2" / "probing_questions" / "probing_questions.json").unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_beam(beam)


def test_one_data_set_is_given_in_one_format(beam, write):
    file = write([ASKED])
    path, found = read_given(None, longmemeval=file)
    assert (path, found.name) == (file, "LongMemEval")
    assert read_given(None, beam=beam)[1].name == "BEAM 100K"
    for given in ({}, {"longmemeval": file, "beam": beam}):
        with pytest.raises(ConfigurationError, match="one of them"):
            read_given(None, **given)


def test_a_result_names_what_was_read_of_a_folder(beam, write):
    service = Service("http://127.0.0.1:1", "kem_1", "argument")
    before = describe_run(beam, read_beam(beam), service)["data"]
    write([chat("Cut.")], "100K", "2", "chat_trunecated.json")
    after = describe_run(beam, read_beam(beam), service)["data"]
    assert before["file"] == after["file"] == "100K"
    assert before["sha256"] != after["sha256"]
