"""LongMemEval as a data set of an evaluation: a question has a store of its own. Pure."""

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
        stores = tuple(_store(entry) for entry in document)
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


def _store(asked: dict[str, Any]) -> Store:
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
    question = _question(asked, frozenset(gold))
    kept = (question,)
    return Store(
        store_id=asked["question_id"],
        units=tuple(units),
        questions=kept if gold else (),
        unlabelled=() if gold else kept,
    )


def _question(asked: dict[str, Any], gold: frozenset[str]) -> Question:
    never_said = asked["question_id"].endswith("_abs")
    return Question(
        text=asked["question"],
        gold=gold,
        category=ABSTENTION if never_said else asked["question_type"],
        moment=parse_moment(asked["question_date"]),
        answer=str(asked["answer"]).strip() or None,
    )
