"""The report of `benchmarks.search_modes` as Markdown: goals first."""

from typing import Any, Final

from benchmarks.breakdown import SERVICE, WHOLE

MOST_TIMES: Final = 2.5
MOST_MS: Final = 10.0
NAMES: Final = {
    "hybrid": "KeMem, hybrid, every signal",
    "semantic": "KeMem, semantic",
    "raw_hybrid": "the two statements of hybrid, by themselves",
    "raw_semantic": "the statement of semantic, by itself",
}


def modes(result: dict[str, Any]) -> list[str]:
    lines = [
        "# Hybrid search beside semantic and beside raw SQL",
        "",
        f"Users of so many memories, {_texts(result['texts'])}; {result['rounds']} rounds of "
        f"{result['seconds']:g} s per subject. The service's own time is what its log says of a "
        "request. The statements by themselves are the same texts and values over the same pool, "
        "role and policies, without HTTP, key and ranking. A multiple is hybrid's p50 beside the "
        "other's, the median of the rounds' own.",
        "",
        *_goals(result),
    ]
    for size, by_callers in result["sizes"].items():
        for callers, cell in by_callers.items():
            lines += _cell(int(size), callers, cell)
    return lines + _pieces(result["pieces"])


def _texts(name: str) -> str:
    return {
        "LoCoMo": "turns of LoCoMo in their sessions, with speaker and day, repeated with a word "
        "of each exchanged where there are not enough",
    }.get(name, "made up, in sessions, with speaker and day")


def _goals(result: dict[str, Any]) -> list[str]:
    lines = ["| goal, one caller | memories | at most | found |", "|---|--:|--:|--:|"]
    for size, by_callers in result["sizes"].items():
        cell = by_callers["1"]
        pairs = [
            ("client, p50 of hybrid / semantic", MOST_TIMES, cell["hybrid_is_times"]["semantic"]),
            ("server, p50 of hybrid / semantic", MOST_TIMES, cell["hybrid_is_times_at_server"]),
        ]
        if size == "600":
            own = cell["subjects"]["hybrid"]["server_p50_ms"]
            pairs.append(("server, p50 of hybrid, ms", MOST_MS, own))
        lines += [
            f"| {name} | {int(size):,} | {most:g} | {found:.2f}{_missed(found, most)} |"
            for name, most, found in pairs
        ]
    return [*lines, ""]


def _missed(found: float, most: float) -> str:
    return "" if found <= most else " (missed)"


def _cell(size: int, callers: str, cell: dict[str, Any]) -> list[str]:
    lines = [
        f"## {size:,} memories, {callers} caller{'s' if callers != '1' else ''}",
        "",
        "| subject | requests/s | client p50 ms | p95 | server p50 ms | p95 "
        "| CPU ms of the process | hybrid / it |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, one in cell["subjects"].items():
        times = cell["hybrid_is_times"].get(name)
        own = [one["server_p50_ms"], one["server_p95_ms"]]
        lines.append(
            f"| {NAMES[name]} | {one['per_second']:,.0f} | {one['p50_ms']:.1f} "
            f"| {one['p95_ms']:.1f} | {' | '.join(map(_shown, own))} "
            f"| {one['server_cpu_ms']:.1f} | {'' if times is None else f'{times:.2f}'} |"
        )
    return [*lines, ""]


def _shown(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.1f}"


def _pieces(pieces: dict[str, Any]) -> list[str]:
    """A column per size; every piece was timed alone."""
    sizes = list(pieces)
    lines = [
        "## Where the time of one hybrid search goes",
        "",
        "One caller, inside the process, no socket; µs of wall and of CPU in the service.",
        "",
        "| piece | " + " | ".join(f"{int(size):,} memories | CPU" for size in sizes) + " |",
        "|---|" + "--:|" * (2 * len(sizes)),
    ]
    ends = (SERVICE, WHOLE)
    names = [name for name in pieces[sizes[0]] if name not in ends]
    for name in (*names, *ends):
        cells = " | ".join(
            f"{pieces[size][name]['wall_us']:,.0f} | {pieces[size][name]['cpu_us']:,.0f}"
            for size in sizes
        )
        lines.append(f"| {name.replace('  ', '&nbsp;&nbsp;')} | {cells} |")
    return [*lines, ""]
