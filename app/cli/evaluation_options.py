"""What options of `kemem eval` mean: depths, fields of a search; and which service any command
that calls one is for.
"""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from app.console import UNUSABLE, fail
from app.errors import ConfigurationError
from app.evaluation.answer_measurement import Wishes
from app.evaluation.dataset import Dataset, choose
from app.evaluation.reader import MESSAGES
from app.evaluation.run import Plan
from app.settings import Settings
from kemem.address import (
    FOLDER_VARIABLE,
    KEY_VARIABLE,
    URL_VARIABLE,
    Service,
    find_service,
)
from kemem.errors import ConfigurationError as UnusableAddressError

DEFAULT_BUDGET: Final = 2000
"""Tokens of a context, as of the service when it says nothing else."""

MOST_HITS = 100
"""What one search may return."""

OWN_FIELDS = frozenset({"query", "user_id", "limit"})
CONTEXT_FIELDS = frozenset({"query", "max_memory_tokens", "render"})
"""What an evaluation says of a search and of a context itself."""


def depths(text: str) -> list[int]:
    """Increasing, each once."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        fail(
            f"--k takes numbers separated by commas, such as 5,10, and not {text!r}.", code=UNUSABLE
        )
    depths = sorted({int(part) for part in parts})
    if not 1 <= depths[0] <= depths[-1] <= MOST_HITS:
        fail(f"--k takes numbers from 1 to {MOST_HITS}: a search returns no more.", code=UNUSABLE)
    return depths


def search_fields(given: list[str], mode: str | None) -> dict[str, Any]:
    """What every search says besides its question."""
    known = OWN_FIELDS if mode is None else OWN_FIELDS | {"mode"}
    fields = fields_given("--search", given, known)
    return fields if mode is None else {"mode": mode} | fields


def fields_given(option: str, given: list[str], own: Collection[str]) -> dict[str, Any]:
    """What `option` says as KEY=JSON, once each; none of `own`, which the evaluation says."""
    fields: dict[str, Any] = {}
    for field in given:
        name, _, value = field.partition("=")
        if name in own or name in fields:
            fail(
                f"{option} {name}: the evaluation says that itself, or it is there twice.",
                code=UNUSABLE,
            )
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fail(
                f"{option} {name}: what follows the = is no JSON. Texts need quotes: "
                f"{option} '{name or 'mode'}=\"lexical\"'.",
                code=UNUSABLE,
            )
    return fields


def listed(text: str | None) -> list[str]:
    """What is separated by commas, without what is blank."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def context_wishes(
    budgets: list[int] | None, fields: list[str] | None, *, wanted: bool, extract: bool
) -> dict[str, Any]:
    """What a plan says of contexts; nothing when none is wanted."""
    if not wanted:
        if budgets or fields or extract:
            fail("--budget, --context-field and --extract are of --context.", code=UNUSABLE)
        return {}
    return {
        "budgets": tuple(sorted(set(budgets or [DEFAULT_BUDGET]))),
        "context": fields_given("--context-field", fields or [], CONTEXT_FIELDS),
        "extract": extract,
    }


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """Which part of a data set is measured; see `dataset.choose`."""

    categories: list[str]
    stores: int | None
    questions: int | None
    sample: int | None
    seed: int

    def of(self, dataset: Dataset) -> Dataset:
        """Raises ConfigurationError when nothing of it is left."""
        return choose(
            dataset,
            categories=self.categories,
            stores=self.stores,
            questions=self.questions,
            sample=self.sample,
            seed=self.seed,
        )


def depth_of(ks: list[int], reading: Wishes | None) -> int:
    """How many hits a search returns: as many as are measured, or shown to a reader."""
    return ks[-1] if reading is None else max(ks[-1], MESSAGES)


def settings_of(
    ks: list[int], plan: Plan, part: DatasetPart, reading: Wishes | None = None
) -> dict[str, Any]:
    """What a result file says of the options."""
    answers = (
        None
        if reading is None
        else {
            "model": reading.model,
            "judge": reading.judge,
            "variants": reading.variants,
            "window": reading.window,
        }
    )
    return {
        "answers": answers,
        "k": ks,
        "search": plan.search,
        "budgets": plan.budgets,
        "context": plan.context,
        "extract": plan.extract,
        "categories": part.categories or None,
        "limit_questions": part.questions,
        "limit_stores": part.stores,
        "sample": part.sample,
        "seed": part.seed,
        "concurrency": plan.concurrency,
    }


def service_meant(url: str | None, key: str | None, settings: Settings) -> Service:
    """The service of --url and --key, or of KEMEM_URL and KEMEM_API_KEY; else the one that the
    client finds on this machine.

    Raises:
        ConfigurationError: the address is none, there is no key for it, or several services run.

    """
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in {URL_VARIABLE, KEY_VARIABLE, FOLDER_VARIABLE}
    }
    if settings.data_dir is not None:
        environ[FOLDER_VARIABLE] = str(settings.data_dir)
    try:
        return find_service(url, key, environ, default_url=f"http://127.0.0.1:{settings.port}")
    except UnusableAddressError as error:
        sentence = (
            str(error)
            .replace("base_url", "--url")
            .replace("argument api_key", "option --key")
            .replace(
                f"set {KEY_VARIABLE}, or pass api_key", f"give it with --key, or in {KEY_VARIABLE}"
            )
        )
        raise ConfigurationError(sentence.replace("api_key", "--key")) from None
