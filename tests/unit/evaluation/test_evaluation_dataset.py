"""What `kemem eval` reads: its own shape, LoCoMo as it is, and what it refuses."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.errors import ConfigurationError
from app.evaluation.dataset import (
    NEVER_SAID,
    Dataset,
    DatasetUnit,
    Question,
    Store,
    choose,
    for_a_reader,
    parse_moment,
)
from app.evaluation.dataset_file import read_dataset
from app.evaluation.locomo import read_conversation, read_locomo
from app.evaluation.run import BATCH, Loaded, batches


@pytest.fixture
def write(tmp_path):
    def written(document):
        file = tmp_path / "set.json"
        file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        return file

    return written


def document(**changes):
    """A small data set; `changes` go into its one store."""
    store = {
        "id": "ana",
        "units": [
            {"id": "1", "text": "我住在杭州。", "date": "2023-05-08", "mood": "calm"},
            {"id": 2, "text": "Hello", "session": 7, "speaker": "Ben", "role": "assistant"},
        ],
        "questions": [
            {"question": "住在哪里？", "gold": ["1", "1"], "category": "place"},
            {"question": "Who?", "gold": [2, "3"], "type": "who", "date": "2024-01-02T03:04:05Z"},
            {"question": "What?", "gold": ["4"]},
        ],
    }
    return {"name": "small", "lang": "zh", "stores": [store | changes], "source": "here"}


def test_a_data_set_is_read(write):
    found = read_dataset(write(document() | {"apart": ["who"]}))

    day = datetime(2023, 5, 8, tzinfo=UTC)
    [store] = found.stores
    assert store.units == (
        DatasetUnit("1", "我住在杭州。", moment=day),
        DatasetUnit("2", "Hello", session="7", speaker="Ben", role="assistant"),
    )
    assert store.questions == (
        Question("住在哪里？", frozenset({"1"}), "place"),
        Question("Who?", frozenset({"2"}), "who", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
    )
    assert (found.name, found.lang, found.apart) == ("small", "zh", frozenset({"who"}))
    # "3" and "4" are nowhere, and the third question asks for nothing else.
    assert [one.text for one in store.unlabelled] == ["What?"]
    assert (found.unknown_gold, found.without_gold, found.unread_dates) == (2, 1, 0)
    assert (found.unit_count, found.question_count) == (2, 2)
    assert found.categories == ["place", "who"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"units": []}, "store 'ana': it has no units"),
        ({"units": "all"}, "store 'ana': `units` is no list"),
        ({"units": [{"text": "Hello"}]}, "store 'ana', unit 1: it has no `id`"),
        ({"units": [{"id": "1", "text": " "}]}, "store 'ana', unit '1': `text` is no text"),
        ({"units": [{"id": "1", "text": 5}]}, "store 'ana', unit '1': `text` is no text"),
        ({"units": ["Hello"]}, "store 'ana', unit 1: it is no JSON object"),
        ({"units": [{"id": ["1"], "text": "Hello"}]}, "store 'ana', unit 1: `id` is neither"),
        (
            {"units": [{"id": "1", "text": "Hello"}, {"id": 1, "text": "Again"}]},
            "store 'ana', unit '1': the id stands there twice",
        ),
        (
            {"units": [{"id": "1", "text": "Hello", "role": "tool"}]},
            "store 'ana', unit '1': `role` is neither of user and assistant",
        ),
        (
            {"units": [{"id": "1", "text": "Hello", "date": ["May"]}]},
            "store 'ana', unit '1': `date` is neither",
        ),
        ({"questions": None}, "store 'ana': `questions` is no list"),
        ({"questions": [{"gold": ["1"]}]}, "store 'ana', question 1: `question` is no text"),
        (
            {"questions": [{"question": "Who?", "gold": "1"}]},
            "store 'ana', question 1: `gold` is no list",
        ),
        (
            {"questions": [{"question": "Who?", "gold": [], "rubric": "Ben"}]},
            "store 'ana', question 1: `rubric` is no list",
        ),
        (
            {"questions": [{"question": "Who?", "gold": [], "answer": ["Ben"]}]},
            "store 'ana', question 1: `answer` is neither",
        ),
        ({"questions": []}, "there is no question"),
        ({"id": True}, "store 1: `id` is neither"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(write, changes, words):
    with pytest.raises(ConfigurationError) as refused:
        read_dataset(write(document(**changes)))
    assert str(refused.value).startswith("set.json, ")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        ([], "the file: it is no JSON object"),
        ({"name": "none"}, "the file: `stores` is no list"),
        ({"stores": []}, "there is no question"),
        ({"stores": document()["stores"] * 2}, "store 'ana': the id stands there twice"),
        (document() | {"apart": "who"}, "`apart` is no list"),
    ],
)
def test_what_is_wrong_with_the_whole_is_said(write, whole, words):
    with pytest.raises(ConfigurationError) as refused:
        read_dataset(write(whole))
    assert words in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json_is_said(tmp_path, content):
    (tmp_path / "set.json").write_bytes(content)
    with pytest.raises(ConfigurationError) as refused:
        read_dataset(tmp_path / "set.json")
    assert "set.json is no JSON in UTF-8" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2023-05-08", datetime(2023, 5, 8, tzinfo=UTC)),
        ("2023-05-08T13:56:00Z", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        (
            "2023-05-08 13:56+02:00",
            datetime(2023, 5, 8, 13, 56, tzinfo=timezone(timedelta(hours=2))),
        ),
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("12:09 am on 13 September, 2023", datetime(2023, 9, 13, 0, 9, tzinfo=UTC)),
        ("2023/05/20 (Sat) 02:21", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("2023/5/8", datetime(2023, 5, 8, tzinfo=UTC)),
        ("2023-05", datetime(2023, 5, 1, tzinfo=UTC)),
        ("8 May 2023", datetime(2023, 5, 8, tzinfo=UTC)),
        ("May 8, 2023", datetime(2023, 5, 8, tzinfo=UTC)),
        ("2023年5月8日", datetime(2023, 5, 8, tzinfo=UTC)),
        ("last Tuesday", None),
        ("March-15-2024", datetime(2024, 3, 15, tzinfo=UTC)),
        ("2023-02-30", None),
    ],
)
def test_dates_are_read_as_people_write_them(text, moment):
    assert parse_moment(text) == moment


def test_dates_nobody_can_read_are_counted(write):
    changed = document(units=[{"id": "1", "text": "Hello", "date": "long ago"}])
    found = read_dataset(write(changed))
    assert found.unread_dates == 1
    assert found.stores[0].units[0].moment is None


def several(*counts, category="a"):
    """Stores with so many questions each."""
    return Dataset(
        "some",
        tuple(
            Store(
                f"s{number}",
                (DatasetUnit("u", "Hello"),),
                tuple(
                    Question(f"{number}.{one}", frozenset({"u"}), "ab"[one % 2])
                    for one in range(count)
                ),
            )
            for number, count in enumerate(counts)
        ),
    )


def asked(dataset):
    return [one.text for store in dataset.stores for one in store.questions]


def test_a_part_of_the_questions_is_spread_over_all():
    assert asked(choose(several(4, 4), questions=4)) == ["0.0", "0.2", "1.0", "1.2"]
    assert asked(choose(several(4, 4), questions=8)) == asked(several(4, 4))
    assert asked(choose(several(4, 4), questions=9)) == asked(several(4, 4))
    assert asked(choose(several(4, 4), questions=1)) == ["0.0"]


def test_stores_without_questions_are_not_stored():
    chosen = choose(several(1, 0, 4), questions=1)
    assert [store.store_id for store in chosen.stores] == ["s0"]
    assert [store.store_id for store in choose(several(1, 0, 4)).stores] == ["s0", "s2"]


def test_categories_and_stores_are_chosen():
    assert asked(choose(several(2, 2, 2), categories=["b"], stores=2)) == ["0.1", "1.1"]


def test_a_category_that_is_none_is_named_with_those_there_are():
    with pytest.raises(ConfigurationError, match="no category c: it has a, b"):
        choose(several(4), categories=["a", "c"])


def test_nothing_left_to_ask_is_refused():
    with pytest.raises(ConfigurationError, match="no question"):
        choose(several(0, 4), stores=1)


def test_so_many_of_each_category_are_drawn_and_the_same_by_the_same_seed():
    chosen = choose(several(20, 20), sample=3, seed=7)
    assert sorted(one.category for store in chosen.stores for one in store.questions) == [
        *"aaa", *"bbb",
    ]  # fmt: skip
    assert asked(choose(several(20, 20), sample=3, seed=7)) == asked(chosen)
    assert asked(choose(several(20, 20), sample=3, seed=8)) != asked(chosen)
    # What is drawn of one category does not depend on another.
    alone = choose(several(20, 20), categories=["b"], sample=3, seed=7)
    assert set(asked(alone)) < set(asked(chosen))
    assert asked(choose(several(1, 2), sample=3)) == ["0.0", "1.0", "1.1"]


def test_a_reader_is_asked_what_can_be_graded(write):
    questions = [
        {"question": "Where?", "gold": ["1"], "answer": "Hangzhou"},
        {"question": "Who?", "gold": [2]},
        {"question": "Why?", "gold": [], "rubric": ["never said"]},
        {"question": "When?", "gold": [], "answer": " "},
    ]
    found = read_dataset(write(document(questions=questions)))
    assert asked(found) == ["Where?", "Who?"]
    read = for_a_reader(found)
    assert asked(read) == ["Where?", "Why?"]
    assert read.without_reference == 2
    assert read.stores[0].questions[1].rubric == ("never said",)


def test_a_role_may_stand_where_the_speaker_does(write):
    units = [{"id": n, "text": "Hello", "speaker": n} for n in ("user", "assistant", "Ben")]
    [store] = read_dataset(write(document(units=units))).stores
    assert [(one.speaker, one.role) for one in store.units] == [
        (None, "user"), (None, "assistant"), ("Ben", "user"),
    ]  # fmt: skip


def test_units_share_a_request_by_session_and_moment_in_their_order():
    day, next_day = datetime(2023, 5, 8, tzinfo=UTC), datetime(2023, 5, 9, tzinfo=UTC)
    units = [
        DatasetUnit("1", "x", "a", moment=day),
        DatasetUnit("2", "x", "a", moment=day),
        DatasetUnit("3", "x", "a", moment=next_day),
        DatasetUnit("4", "x", "b", moment=next_day),
        DatasetUnit("5", "x", "a", moment=day),
        DatasetUnit("6", "x"),
    ]
    assert [[one.unit_id for one in batch] for batch in batches(units)] == [
        ["1", "2"], ["3"], ["4"], ["5"], ["6"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "sizes"), [(BATCH - 1, [99]), (BATCH, [100]), (BATCH + 1, [100, 1])]
)
def test_a_request_has_at_most_a_hundred(count, sizes):
    units = [DatasetUnit(str(number), "x") for number in range(count)]
    assert [len(batch) for batch in batches(units)] == sizes


def test_memories_of_an_answer_are_counted_once():
    loaded = Loaded("u", units={"m1": {"a", "b"}, "m2": {"c"}})
    assert loaded.memories_of({"a", "b"}) == 1
    assert loaded.memories_of({"a", "b", "c"}) == 2
    assert loaded.memories_of({"a", "refused"}) == 2


# The shape of LoCoMo, with words of our own.
TALK = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a red kite"},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Lovely."},
        ],
        "session_2_date_time": "some day",
        "session_2": [{"speaker": "Ana", "dia_id": "D2:1", "text": "", "blip_caption": "a dog"}],
    },
    "qa": [
        {
            "question": "What flies?",
            "answer": "a kite",
            "category": 4,
            "evidence": ["D:1:01; D9:9"],
        },
        {"question": "Who barks?", "category": 5, "evidence": ["D2:1"]},
        {"question": "Why?", "answer": 1, "category": 3, "evidence": ["D"]},
    ],
}


def test_locomo_is_read_as_it_is(write):
    found = read_locomo(write([TALK]))

    moment = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    [store] = found.stores
    assert store.store_id == "conv-1"
    assert store.units == (
        DatasetUnit("D1:1", "Look! [shows a red kite]", "1", "Ana", moment, "user"),
        DatasetUnit("D1:2", "Lovely.", "1", "Ben", moment, "assistant"),
        DatasetUnit("D2:1", "[shows a dog]", "2", "Ana", None, "user"),
    )
    assert store.questions == (
        Question("What flies?", frozenset({"D1:1"}), "single-hop", answer="a kite"),
        Question("Who barks?", frozenset({"D2:1"}), "adversarial", answer=NEVER_SAID),
    )
    assert store.unlabelled == (Question("Why?", frozenset(), "open-domain", answer="1"),)
    assert found.apart == {"adversarial"}
    assert (found.without_gold, found.unread_dates) == (1, 1)


def test_the_demo_says_who_spoke(write):
    talk = read_conversation(write([TALK]), 0)
    assert [turn.statement for turn in talk.sittings[0].turns] == [
        "Ana: Look! [shows a red kite]", "Ben: Lovely.",
    ]  # fmt: skip
    with pytest.raises(ConfigurationError, match="choose 0 to 0"):
        read_conversation(write([TALK]), 1)


@pytest.mark.parametrize("other", [{}, [{}], [1], {"stores": []}, document()])
def test_what_is_no_locomo_is_refused(write, other):
    with pytest.raises(ConfigurationError):
        read_locomo(write(other))
