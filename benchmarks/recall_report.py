"""The report of `benchmarks.recall` as Markdown: goals first, then the steps of each data set."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.recall_ladder import ADDED, ARMS, FULL, LEXICAL, RANKS, WEIGHTS

Figures = Mapping[str, Any]

DEPTHS: Final = ("5", "10", "25", "50")
TITLES: Final = {
    "locomo": "LoCoMo, dialogue turns, categories 1 to 4",
    "madial_en": "MADial-Bench, English",
    "madial_zh": "MADial-Bench, Chinese",
    "chinese": "Our Chinese set",
}

# recall@5, @10, @25, @50, nDCG@10, in percent; None where nobody says.
_Published = tuple[str, tuple[float | None, ...]]
REFERENCES: Final[Mapping[str, Sequence[_Published]]] = {
    "locomo": (
        ("BM25 with speaker and date, in memory", (55.1, 63.3, 71.2, 76.9, 49.5)),
        ("wordllama, in memory", (48.1, 56.3, 67.7, 75.6, 41.4)),
        ("RRF of BM25 and wordllama, in memory", (49.5, 57.7, 69.1, 77.0, 43.7)),
        ("weighted sum 0.8 / 0.2, in memory", (57.2, 65.1, 73.1, 79.6, 51.0)),
        ("the issue's recipe with wordllama, in memory", (69.6, 78.7, 87.2, 92.1, 61.6)),
        ("the issue's recipe with all-MiniLM-L6-v2, in memory", (72.0, 81.6, 89.0, 93.1, 63.7)),
        ("DRAGON (LoCoMo paper)", (60.4, 69.6, 79.7, 85.6, None)),
        ("best of some 85 embedders, 8 billion parameters", (None, 80.8, None, None, 66.9)),
        ("stella-400M", (None, 73.8, None, None, None)),
        ("bge-m3", (None, 65.6, None, None, None)),
        ("all-MiniLM-L6-v2", (None, 47.4, None, None, None)),
    ),
    "madial_en": (
        ("text-embedding-3-large", (None, 80.6, None, None, None)),
        ("bge-m3", (None, 70.5, None, None, None)),
        ("BM25, stemmed", (None, 65.5, None, None, None)),
    ),
    "madial_zh": (
        ("text-embedding-3-large", (None, 82.4, None, None, None)),
        ("bge-m3", (None, 71.4, None, None, None)),
        ("BM25, characters and bigrams", (None, 67.0, None, None, None)),
        ("wordllama", (None, 25.1, None, None, None)),
    ),
    "chinese": (("BM25, characters and bigrams", (None, 72.8, None, None, None)),),
}
GOALS: Final = (
    ("locomo", "recall@10", 78.7),
    ("locomo", "recall@10", 81.0),
    ("locomo", "recall@25", 88.0),
    ("locomo", "nDCG@10", 62.0),
    ("locomo", "sessions@5", 88.6),
    ("madial_zh", "recall@10", 67.0),
    ("madial_en", "recall@10", 68.2),
)


def markdown(result: Mapping[str, Any]) -> str:
    about, sets = result["about"], result["sets"]
    models = sorted({model for one in sets.values() for model in one["embedding_models"]})
    lines = [
        "# What is found",
        "",
        "Through the HTTP API of a keyless service as it comes, on the embedded database; each "
        "data set is stored once and asked at every step. Percent; `docs/evaluation.md` defines "
        "the figures. Latency is the client's, with "
        f"{about['concurrency']} searches of 50 hits under way and everything on one machine: an "
        "aside, `search.md` measures it.",
        "",
        f"{about['date']}, KeMem {about['kemem']}, embedded by {', '.join(models)}, analyser "
        f"{about['analyser']}, PostgreSQL {about['postgresql']}, pgvector {about['pgvector']}, "
        f"Python {about['python']}, {about['processors']} processors, load of the machine "
        f"{about['load_before']:.1f} before and {about['load_after']:.1f} after "
        f"{about['minutes']:.0f} minutes.",
        "",
        *_goals(sets),
    ]
    for key, one in sets.items():
        lines += _set(key, one)
    return "\n".join(lines) + "\n"


def _goals(sets: Mapping[str, Any]) -> list[str]:
    lines = ["## Goals", "", "| data set | figure | at least | found |", "|---|---|--:|--:|"]
    for key, name, goal in GOALS:
        if key in sets:
            total = _step(sets[key], FULL)["total"]
            found = _named(total)[name]
            missed = "" if found >= goal else " (missed)"
            lines.append(f"| {TITLES[key]} | {name} | {goal:.1f} | {found:.1f}{missed} |")
    lines += [
        "",
        "Hybrid beside its own lexical half, recall@10, in total and in its worst category:",
        "",
    ]
    lines += [
        "| data set | lexical | two arms | everything | worst category | lexical | everything |"
    ]
    lines += ["|---|--:|--:|--:|---|--:|--:|"]
    return [*lines, *(_beside_lexical(key, one) for key, one in sets.items()), ""]


def _beside_lexical(key: str, one: Mapping[str, Any]) -> str:
    lexical, arms, full = (_step(one, name) for name in (LEXICAL, ARMS, FULL))
    worst = min(
        full["categories"],
        key=lambda name: _ten(full["categories"][name]) - _ten(lexical["categories"][name]),
    )
    half = _ten(lexical["total"])
    totals = " | ".join(
        f"{_ten(step['total']):.1f}{' (below)' if _ten(step['total']) < half else ''}"
        for step in (lexical, arms, full)
    )
    return (
        f"| {TITLES[key]} | {totals} | {worst} | {_ten(lexical['categories'][worst]):.1f} "
        f"| {_ten(full['categories'][worst]):.1f} |"
    )


def _set(key: str, one: Mapping[str, Any]) -> list[str]:
    loaded = one["loaded"]
    full = _step(one, FULL)
    refusals = "".join(f", {code}: {count}" for code, count in loaded["refusals"].items())
    lines = [
        f"## {TITLES[key]}",
        "",
        f"{loaded['units']:,} units, {one['questions']:,} questions. Stored {loaded['stored']:,}; "
        f"{loaded['same_as_another']} are word for word another one, which stands for both; "
        f"{loaded['refused']} refused{refusals}.",
        "",
    ]
    failed = sum(step["asked"]["failed"] + step["asked"]["degraded"] for step in one["steps"])
    if failed:
        lines += [f"**{failed} searches failed or went without the embedder.**", ""]
    lines += _ladder(one, full)
    lines += _references(key)
    return lines + (_categories(one, full) if len(full["categories"]) > 1 else [])


def _ladder(one: Mapping[str, Any], full: Figures) -> list[str]:
    names = tuple(_named(full["total"]))
    lines = [
        f"| step | {' | '.join(names)} | recall@10 against everything | p50 ms | tokens@10 |",
        "|---|" + "--:|" * (len(names) + 3),
    ]
    part = ""
    for step in one["steps"]:
        if step["part"] != part:
            part = step["part"]
            lines.append(f"| *{part}* |" + " |" * (len(names) + 3))
        figures = " | ".join(_shown(value) for value in _named(step["total"]).values())
        apart = _ten(step["total"]) - _ten(full["total"])
        lines.append(
            f"| {step['step']} | {figures} | {'' if step is full else f'{apart:+.1f}'} "
            f"| {step['milliseconds']['p50']:.0f} | {step['total']['tokens']['10']:.0f} |"
        )
    return [*lines, ""]


def _references(key: str) -> list[str]:
    lines = [
        "Reference figures, from the issue and the data sets' own pages:",
        "",
        "| method | recall@5 | recall@10 | recall@25 | recall@50 | nDCG@10 |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {name} | {' | '.join(map(_shown, figures))} |" for name, figures in REFERENCES[key]
    ]
    return [*lines, ""]


def _categories(one: Mapping[str, Any], full: Figures) -> list[str]:
    """Everything by category, and every step's recall@10 by category."""
    names = tuple(_named(full["total"]))
    lines = [
        f"By category, {FULL}:",
        "",
        f"| category | questions | {' | '.join(names)} |",
        "|---|" + "--:|" * (len(names) + 1),
    ]
    lines += [
        f"| {name} | {figures['questions']} "
        f"| {' | '.join(_shown(value) for value in _named(figures).values())} |"
        for name, figures in full["categories"].items()
    ]
    categories = list(full["categories"])
    lines += [
        "",
        "recall@10 of each step by category:",
        "",
        f"| step | {' | '.join(categories)} |",
        "|---|" + "--:|" * len(categories),
    ]
    for step in one["steps"]:
        if step["part"] != WEIGHTS:
            tens = " | ".join(f"{_ten(step['categories'][name]):.1f}" for name in categories)
            lines.append(f"| {_where(step)} | {tens} |")
    return [*lines, ""]


def _where(step: Mapping[str, Any]) -> str:
    prefix = {RANKS: "reciprocal ranks: ", ADDED: ""}.get(step["part"], "")
    return f"{prefix}{step['step']}"


def _step(one: Mapping[str, Any], name: str) -> Any:
    return next(step for step in one["steps"] if step["step"] == name)


def _named(figures: Figures) -> dict[str, float | Any]:
    """Figures of a total or a category in percent, by the name they have in a table."""
    shares = {f"recall@{k}": figures["recall"][k] for k in DEPTHS} | {
        "nDCG@10": figures["ndcg@10"],
        "MRR": figures["mrr"],
        "sessions@5": figures["session_recall@5"],
    }
    return {name: None if share is None else share * 100 for name, share in shares.items()}


def _ten(figures: Figures) -> float:
    return float(figures["recall"]["10"]) * 100


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
