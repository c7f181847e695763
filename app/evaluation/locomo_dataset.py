"""LoCoMo as a data set of an evaluation: a conversation is a store, a turn a unit. Pure."""

from pathlib import Path

from app.errors import ConfigurationError
from app.evaluation.dataset import (
    NEVER_SAID,
    Dataset,
    DatasetUnit,
    Question,
    Store,
    parse_moment,
)
from app.evaluation.locomo import (
    ADVERSARIAL,
    CATEGORIES,
    LocomoConversation,
    LocomoQuestion,
    Sitting,
    read_conversations,
)


def read_locomo(path: Path) -> Dataset:
    """The whole file. Who spoke is the unit's speaker and no part of its text.

    Categories 1 to 4 make the total; the fifth, which asks for what was never said, is apart.

    Raises:
        ConfigurationError: the file is no such data set.

    """
    talks = read_conversations(path)
    stores = tuple(_store(talk) for talk in talks)
    if not any(store.questions for store in stores):
        raise ConfigurationError(f"{path.name} has no question with evidence.")
    return Dataset(
        name="LoCoMo",
        stores=stores,
        lang="en",
        apart=frozenset({ADVERSARIAL}),
        without_gold=sum(not question.evidence for talk in talks for question in talk.questions),
        unread_dates=sum(
            bool(sitting.date) and parse_moment(sitting.date) is None
            for talk in talks
            for sitting in talk.sittings
        ),
    )


def _store(talk: LocomoConversation) -> Store:
    questions = [_question(question) for question in talk.questions]
    return Store(
        store_id=talk.name,
        units=tuple(unit for sitting in talk.sittings for unit in _units(sitting)),
        questions=tuple(question for question in questions if question.gold),
        unlabelled=tuple(question for question in questions if not question.gold),
    )


def _question(asked: LocomoQuestion) -> Question:
    category = CATEGORIES.get(asked.category, ADVERSARIAL)
    # What the file calls the answer to an adversarial question is the wrong one.
    answer = NEVER_SAID if category == ADVERSARIAL else asked.answer.strip() or None
    return Question(asked.text, asked.evidence, category, answer=answer)


def _units(sitting: Sitting) -> list[DatasetUnit]:
    moment = parse_moment(sitting.date)
    return [
        DatasetUnit(turn.dia_id, turn.content, str(sitting.number), turn.speaker, moment, turn.role)
        for turn in sitting.turns
    ]
