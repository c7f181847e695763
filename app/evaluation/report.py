"""What an evaluation found: figures per category and in total, as a table and as JSON."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from app.console import out, print_table
from app.evaluation.dataset import Dataset
from app.evaluation.metrics import (
    COUNTED_AS,
    NDCG_AT,
    SESSIONS_AT,
    Scores,
    estimated_tokens,
    mean_scores,
    quantile,
    score,
)
from app.evaluation.run import Asked, Evaluation, Loaded

TOTAL = "total"
_DIGITS = 4


def report_of(
    dataset: Dataset, evaluation: Evaluation, asked: Sequence[Asked], ks: Sequence[int]
) -> dict[str, Any]:
    """Everything that was found, ready for JSON; shares are 0 to 1.

    `total` is the mean over all questions but those of the data set's categories apart.
    """
    sessions = {
        store.store_id: {unit.unit_id: unit.session for unit in store.units if unit.session}
        for store in dataset.stores
    }
    scored = [
        score(
            one.hits,
            one.question.gold,
            relevant=one.relevant,
            ks=ks,
            sessions=sessions[one.store.store_id],
        )
        for one in asked
    ]
    groups: dict[str, list[int]] = {category: [] for category in sorted(dataset.categories)}
    for number, one in enumerate(asked):
        groups[one.question.category].append(number)
    total = [
        number for name, held in groups.items() if name not in dataset.apart for number in held
    ]
    figures = {
        name: _figures([asked[number] for number in held], [scored[number] for number in held], ks)
        for name, held in (groups | {TOTAL: total}).items()
        if held
    }
    models = frozenset[str]().union(*(one.models for one in asked))
    return {
        "total": figures.pop(TOTAL, None),
        "categories": {name: one for name, one in figures.items() if name not in dataset.apart},
        "apart": {name: one for name, one in figures.items() if name in dataset.apart},
        "milliseconds": _milliseconds(asked),
        "token_counter": COUNTED_AS,
        "loaded": _loaded(evaluation.loaded.values(), dataset),
        "asked": {
            "questions": len(asked),
            "problems": dict(Counter(one.problem for one in asked if one.problem)),
            "failed": sum(one.failed for one in asked),
            "degraded": sum(one.degraded for one in asked),
            "without_embedder": sum(_lacks_embedder(one, models) for one in asked),
            "without_gold": dataset.without_gold,
            "unknown_gold": dataset.unknown_gold,
            "reference_time_refused": evaluation.unsent_times,
        },
        "embedding_models": sorted(models),
        "questions": [_line(one, made) for one, made in zip(asked, scored, strict=True)],
    }


def _figures(asked: Sequence[Asked], scored: Sequence[Scores], ks: Sequence[int]) -> dict[str, Any]:
    mean = mean_scores(scored)
    tokens = {k: [sum(map(estimated_tokens, one.texts[:k])) for one in asked] for k in ks}
    return {
        "questions": len(asked),
        "recall": {str(k): round(value, _DIGITS) for k, value in mean.recall.items()},
        "hit": {str(k): round(value, _DIGITS) for k, value in mean.hit.items()},
        f"ndcg@{NDCG_AT}": round(mean.ndcg, _DIGITS),
        "mrr": round(mean.mrr, _DIGITS),
        f"session_recall@{SESSIONS_AT}": _rounded(mean.session_recall),
        "tokens": {str(k): round(sum(each) / len(each), 1) for k, each in tokens.items()},
    }


def _lacks_embedder(one: Asked, models: frozenset[str]) -> bool:
    """Whether it was an embedder that did not answer, and not the reranker alone.

    Args:
        models: all that embedded any question.

    """
    if not one.degraded or one.mode == "lexical":
        return False
    return one.reranker is not None or not one.models or one.models < models


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _milliseconds(asked: Sequence[Asked]) -> dict[str, float] | None:
    """How long the client waited for a search; refused ones are quick and do not count."""
    waited = [one.milliseconds for one in asked if one.problem is None]
    if not waited:
        return None
    return {f"p{share}": round(quantile(waited, share / 100), 2) for share in (50, 95)}


def _loaded(loaded: Any, dataset: Dataset) -> dict[str, Any]:
    held: list[Loaded] = list(loaded)
    events = sum((one.events for one in held), Counter[str]())
    return {
        "units": dataset.unit_count,
        "stored": events["ADD"],
        "same_as_another": events["NONE"],
        "refused": events["REJECT"] + events["SKIP"],
        "refusals": dict(sum((one.refusals for one in held), Counter[str]())),
        "ahead_of_now": sum(one.ahead for one in held),
        "unread_dates": dataset.unread_dates,
    }


def _line(one: Asked, made: Scores) -> dict[str, Any]:
    """One question: at which rank each of its units was found, None when it was not."""
    ranks = {
        unit: next((rank for rank, hit in enumerate(one.hits, 1) if unit in hit), None)
        for unit in sorted(one.question.gold)
    }
    return {
        "store": one.store.store_id,
        "category": one.question.category,
        "question": one.question.text,
        "ranks": ranks,
        f"ndcg@{NDCG_AT}": round(made.ndcg, _DIGITS),
        "milliseconds": round(one.milliseconds, 2),
        "problem": one.problem,
    }


def print_report(title: str, report: Mapping[str, Any], ks: Sequence[int]) -> None:
    """The table for people, in percent, and what was odd."""
    sessions = f"session_recall@{SESSIONS_AT}"
    with_sessions = any(one[sessions] is not None for _, one in _rows(report))
    depth = 10 if 10 in ks else ks[-1]
    columns = [
        "questions",
        *(f"recall@{k}" for k in ks),
        f"nDCG@{NDCG_AT}",
        "MRR",
        *([f"sessions@{SESSIONS_AT}"] if with_sessions else ()),
        f"tokens@{depth}",
    ]
    rows = [
        (
            name,
            one["questions"],
            *(_percent(one["recall"][str(k)]) for k in ks),
            _percent(one[f"ndcg@{NDCG_AT}"]),
            _percent(one["mrr"]),
            *([_percent(one[sessions])] if with_sessions else ()),
            f"{one['tokens'][str(depth)]:.0f}",
        )
        for name, one in _rows(report)
    ]
    print_table(title, ("category", *columns), rows, right=columns)
    for sentence in _sentences(report):
        out.print(sentence, markup=False, soft_wrap=True)


def _rows(report: Mapping[str, Any]) -> list[tuple[str, Any]]:
    rows = list(report["categories"].items())
    if report["total"] is not None:
        rows.append((TOTAL, report["total"]))
    return [*rows, *((f"apart: {name}", one) for name, one in report["apart"].items())]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.1f}"


def _sentences(report: Mapping[str, Any]) -> list[str]:
    """What one should know besides the table; nothing about what is zero."""
    loaded, asked, waited = report["loaded"], report["asked"], report["milliseconds"]
    sentences = [
        f"Stored {loaded['stored']} of {loaded['units']} units; {loaded['same_as_another']} are "
        f"word for word another one, which stands for both; {loaded['refused']} refused.",
        *(f"  refused as {code}: {count}" for code, count in loaded["refusals"].items()),
    ]
    if waited:
        sentences.append(
            f"A search took {waited['p50']:.1f} ms (p50) and {waited['p95']:.1f} ms (p95), as the "
            "client sees it."
        )
    told = (
        (loaded["ahead_of_now"], "units are dated in the future and were stored without a date."),
        (loaded["unread_dates"], "dates could not be read and were left out."),
        (asked["unknown_gold"], "answers name a unit that is not there; they were dropped."),
        (asked["without_gold"], "questions have no answer to find and were not asked."),
        (asked["without_embedder"], "searches were answered without the embedder."),
        (
            asked["degraded"] - asked["without_embedder"],
            "searches were answered in the order they had without the reranker.",
        ),
        (asked["failed"], "searches failed; their questions count as missed."),
    )
    sentences += [f"{count} {words}" for count, words in told if count]
    sentences += [
        f"{count} questions were not answered ({code}); they count as missed."
        for code, count in asked["problems"].items()
    ]
    if asked["reference_time_refused"]:
        sentences.append("The dates of questions were not sent: this service takes none.")
    return sentences
