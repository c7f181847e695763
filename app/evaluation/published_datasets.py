"""BEAM and LongMemEval as data sets of an evaluation. Pure but for reading.

BEAM comes as the folders of its repository. A chat is a folder with `chat.json` and
`probing_questions/probing_questions.json`; a size of the set (`chats/100K`, up to 1M) is a folder
of these. A batch of the chat is a session here, and its date is that of the first message that
names one. Of LongMemEval a question has a store of its own.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from app.errors import ConfigurationError
from app.evaluation.dataset import (
    ROLES,
    Dataset,
    DatasetUnit,
    Question,
    Store,
    parse_moment,
)
from app.evaluation.dataset_file import read_json

CHAT: Final = "chat.json"
CUT: Final = "chat_trunecated.json"
"""The chat down to its size, where it had become longer; its name is spelt like that."""

QUESTIONS: Final = Path("probing_questions") / "probing_questions.json"

_ANSWERS: Final = ("answer", "ideal_response", "ideal_answer", "ideal_summary")
"""What the right answer is called differs by the kind of question."""

# The place in the plan of the conversation, which nobody said.
_MARK: Final = re.compile(r"\s*->->.*\Z", re.DOTALL)


def read_beam(folder: Path) -> Dataset:
    """Every chat of `folder`, or the one that it is.

    Raises:
        ConfigurationError: there is none, or one of its files has another shape; names the chat.

    """
    chats = [folder] if (folder / CHAT).is_file() else sorted(folder.iterdir(), key=_place)
    stores = [_beam_store(chat) for chat in chats if (chat / CHAT).is_file()]
    if not stores:
        raise ConfigurationError(f"{folder} has no chat of BEAM: no folder in it has a {CHAT}.")
    return Dataset(
        name=f"BEAM {folder.name}",
        stores=tuple(store for store, _ in stores),
        lang="en",
        unknown_gold=sum(unknown for _, unknown in stores),
        without_gold=sum(len(store.unlabelled) for store, _ in stores),
    )


def _place(chat: Path) -> tuple[int, str]:
    return (int(chat.name) if chat.name.isdecimal() else 0, chat.name)


def _beam_store(chat: Path) -> tuple[Store, int]:
    """One chat, and how many of its labels name no message."""
    cut = chat / CUT
    said = read_json(cut if cut.is_file() else chat / CHAT)
    asked = read_json(chat / QUESTIONS)
    try:
        units = tuple(unit for batch in said for unit in _beam_units(batch))
        questions = [
            _beam_question(question, category)
            for category, listed in asked.items()
            for question in listed
        ]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ConfigurationError(
            f"{chat} is no chat in the layout of BEAM ({type(error).__name__}: {error})."
        ) from error
    known = {unit.unit_id for unit in units}
    if len(known) < len(units):
        raise ConfigurationError(f"{chat}: the id of a message stands there twice.")
    found = [
        Question(
            question.text,
            question.gold & known,
            question.category,
            answer=question.answer,
            rubric=question.rubric,
        )
        for question in questions
    ]
    store = Store(
        store_id=f"{chat.parent.name}-{chat.name}",
        units=units,
        questions=tuple(question for question in found if question.gold),
        unlabelled=tuple(question for question in found if not question.gold),
    )
    return store, sum(len(question.gold - known) for question in questions)


def _beam_units(batch: dict[str, Any]) -> Iterator[DatasetUnit]:
    messages = [message for turn in batch["turns"] for message in turn]
    anchor = next((entry["time_anchor"] for entry in messages if entry.get("time_anchor")), "")
    moment = parse_moment(anchor)
    for entry in messages:
        text = _MARK.sub("", entry["content"])
        if text.strip():
            yield DatasetUnit(
                str(entry["id"]), text, str(batch["batch_number"]), None, moment, entry["role"]
            )


def _beam_question(asked: dict[str, Any], category: str) -> Question:
    answer = next((asked[name] for name in _ANSWERS if asked.get(name)), None)
    return Question(
        text=asked["question"],
        gold=frozenset(_ids(asked.get("source_chat_ids", []))),
        category=category,
        answer=None if answer is None else str(answer),
        rubric=tuple(str(point) for point in asked.get("rubric", [])),
    )


def _ids(labels: Any) -> Iterator[str]:
    """The messages that a label names: a list, or lists by what they are evidence of."""
    if isinstance(labels, dict):
        labels = list(labels.values())
    if not isinstance(labels, list):
        yield str(labels)
        return
    for label in labels:
        yield from _ids(label)


ABSTENTION: Final = "abstention"
"""The category of questions about what was never said; their ids end in `_abs`."""


def read_longmemeval(path: Path) -> Dataset:
    """The whole file. A turn is a unit of its session; the turns that hold the answer are its gold.

    Turns without text, and those of neither user nor assistant, are left out.

    Raises:
        ConfigurationError: the file is no such data set.

    """
    document = read_json(path)
    try:
        stores = tuple(_longmemeval_store(entry) for entry in document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(
            f"{path.name} is no data set in the format of LongMemEval "
            f"({type(error).__name__}: {error})."
        ) from error
    if not stores:
        raise ConfigurationError(f"{path.name} has no question.")
    dates = [
        date for entry in document for date in (entry["question_date"], *entry["haystack_dates"])
    ]
    return Dataset(
        name="LongMemEval",
        stores=stores,
        lang="en",
        without_gold=sum(len(store.unlabelled) for store in stores),
        unread_dates=sum(parse_moment(date) is None for date in dates),
    )


def _longmemeval_store(asked: dict[str, Any]) -> Store:
    units: list[DatasetUnit] = []
    gold: set[str] = set()
    sessions = zip(asked["haystack_dates"], asked["haystack_sessions"], strict=True)
    for number, (date, turns) in enumerate(sessions, 1):
        moment = parse_moment(date)
        for place, turn in enumerate(turns):
            if turn["role"] not in ROLES or not turn["content"].strip():
                continue
            # A session may be there twice, so its own id would not do.
            unit_id = f"{number}:{place}"
            units.append(
                DatasetUnit(unit_id, turn["content"], str(number), None, moment, turn["role"])
            )
            if turn.get("has_answer"):
                gold.add(unit_id)
    question = _longmemeval_question(asked, frozenset(gold))
    kept = (question,)
    return Store(
        store_id=asked["question_id"],
        units=tuple(units),
        questions=kept if gold else (),
        unlabelled=() if gold else kept,
    )


def _longmemeval_question(asked: dict[str, Any], gold: frozenset[str]) -> Question:
    never_said = asked["question_id"].endswith("_abs")
    return Question(
        text=asked["question"],
        gold=gold,
        category=ABSTENTION if never_said else asked["question_type"],
        moment=parse_moment(asked["question_date"]),
        answer=str(asked["answer"]).strip() or None,
    )
