"""The data set of an evaluation: what is stored, what is asked, and where the answer stands. Pure.

`dataset_file` reads it from a file of our shape; `locomo` and `published_datasets` read published
sets into the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Final

from app.errors import ConfigurationError

ROLES: Final = ("user", "assistant")
"""Tool and system messages are never remembered, so no question can find them."""

UNCATEGORISED: Final = "uncategorised"

NEVER_SAID: Final = "Nothing was said about it."
"""The right answer to a question about what never came up."""

# Besides ISO 8601: what LoCoMo, LongMemEval, BEAM and people write.
_DATES: Final = (
    "%I:%M %p on %d %B, %Y",
    "%Y/%m/%d (%a) %H:%M",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%Y-%m",
    "%d %B, %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%Y年%m月%d日",
    "%B-%d-%Y",
)


@dataclass(frozen=True, slots=True)
class DatasetUnit:
    """One thing to store. `moment` is when it was said, `session` the conversation it is of."""

    unit_id: str
    text: str
    session: str | None = None
    speaker: str | None = None
    moment: datetime | None = None
    role: str = "user"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the units of its store that answer it.

    `answer` is a right answer in words, `rubric` what a right answer says, point by point.
    """

    text: str
    gold: frozenset[str]
    category: str = UNCATEGORISED
    moment: datetime | None = None
    answer: str | None = None
    rubric: tuple[str, ...] = ()

    @property
    def can_be_graded(self) -> bool:
        """Whether an answer to it can be told right from wrong."""
        return self.answer is not None or bool(self.rubric)


@dataclass(frozen=True, slots=True)
class Store:
    """What one user has said, and what is asked about it."""

    store_id: str
    units: tuple[DatasetUnit, ...]
    questions: tuple[Question, ...]
    unlabelled: tuple[Question, ...] = ()
    """Questions that no unit answers: nothing can be found for them, yet a reader can be asked."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Stores with their questions; every question here has at least one unit as its answer."""

    name: str
    stores: tuple[Store, ...]
    lang: str | None = None
    apart: frozenset[str] = frozenset()
    """Categories that are reported by themselves and are no part of the total."""

    unknown_gold: int = 0
    """Answers that name no unit of the store; they were left out."""

    without_gold: int = 0
    """Questions of which no unit is the answer; they are asked of a reader alone."""

    without_reference: int = 0
    """Questions that a reader is not asked, because no answer to them could be graded."""

    unread_dates: int = 0
    """Dates nobody could read; what they belong to has none."""

    @property
    def unit_count(self) -> int:
        return sum(len(store.units) for store in self.stores)

    @property
    def question_count(self) -> int:
        return sum(len(store.questions) for store in self.stores)

    @property
    def categories(self) -> list[str]:
        """The categories, in the order in which questions first name them."""
        return list(
            dict.fromkeys(
                question.category for store in self.stores for question in store.questions
            )
        )


def parse_moment(text: str) -> datetime | None:
    """The moment that a date means, or None; a date without a zone is one of UTC."""
    text = text.strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        for pattern in _DATES:
            try:
                return datetime.strptime(text, pattern).replace(tzinfo=UTC)
            except ValueError:
                continue
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def for_a_reader(dataset: Dataset) -> Dataset:
    """The data set with the questions whose answers can be graded, labelled or not."""
    asked = [(store, (*store.questions, *store.unlabelled)) for store in dataset.stores]
    stores = tuple(
        replace(
            store,
            questions=tuple(question for question in both if question.can_be_graded),
            unlabelled=(),
        )
        for store, both in asked
    )
    left_out = sum(not question.can_be_graded for _, both in asked for question in both)
    return replace(dataset, stores=stores, without_reference=left_out)


def choose(
    dataset: Dataset,
    *,
    categories: Iterable[str] = (),
    stores: int | None = None,
    questions: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Dataset:
    """A part of a data set, to be quick: the first stores, some categories, some questions.

    Questions are taken evenly over all that is left; a store that keeps none is left out.

    Args:
        sample: so many questions of each category, drawn at random; all where it has fewer.
        seed: the same one draws the same questions of the same data set.

    Raises:
        ConfigurationError: nothing is left, or there is no such category.

    """
    wanted = set(categories)
    missing = wanted - set(dataset.categories)
    if missing:
        raise ConfigurationError(
            f"{dataset.name} has no category {', '.join(sorted(missing))}: it has "
            f"{', '.join(dataset.categories)}."
        )
    kept = [
        replace(
            store,
            questions=tuple(
                question
                for question in store.questions
                if not wanted or question.category in wanted
            ),
        )
        for store in dataset.stores[:stores]
    ]
    if sample is not None:
        kept = _only(kept, _drawn(kept, sample, seed))
    total = sum(len(store.questions) for store in kept)
    if questions is not None and questions < total:
        numbers = {number * total // questions for number in range(questions)}
        kept = _only(kept, numbers)
    kept = [store for store in kept if store.questions]
    if not kept:
        raise ConfigurationError(f"There is no question to ask of {dataset.name}.")
    return replace(dataset, stores=tuple(kept))


def _drawn(stores: list[Store], sample: int, seed: int) -> set[int]:
    """Numbers of questions, counted over all stores: so many of each category."""
    numbers: dict[str, list[int]] = {}
    for number, question in enumerate(question for store in stores for question in store.questions):
        numbers.setdefault(question.category, []).append(number)
    # Each category has a generator of its own: leaving one out changes no other.
    return {
        number
        for name, held in numbers.items()
        for number in Random(f"{seed} {name}").sample(held, min(sample, len(held)))  # noqa: S311
    }


def _only(stores: list[Store], numbers: set[int]) -> list[Store]:
    """The stores with those questions alone, counted over all of them."""
    chosen = []
    start = 0
    for store in stores:
        questions = tuple(
            question for number, question in enumerate(store.questions, start) if number in numbers
        )
        start += len(store.questions)
        chosen.append(replace(store, questions=questions))
    return chosen
