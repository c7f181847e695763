"""The report of `benchmarks.search` as Markdown: ratios first."""

from typing import Any

from benchmarks.modes_report import modes

GOAL = 0.75
NAMES = {
    "raw_vector": "a. raw asyncpg, no HTTP, vector given",
    "raw_text": "a. raw asyncpg, no HTTP, text embedded",
    "asyncpg_vector": "b. FastAPI + asyncpg, vector given",
    "asyncpg_text": "b. FastAPI + asyncpg, text embedded",
    "asyncpg_tuned": "b. as above, its pool tuned",
    "asyncpg_lean": "b. FastAPI + asyncpg, six fields per hit",
    "orm_vector": "c. FastAPI + ORM, vector given",
    "orm_text": "c. FastAPI + ORM, text embedded",
    "kemem": "d. KeMem, semantic",
    "kemem_no_use": "d. KeMem without counting use",
}


def markdown(result: dict[str, Any]) -> str:
    effort, machine = result["effort"], result["machine"]
    lines = [
        "# Search over HTTP",
        "",
        f"{machine['date']}, {machine['processors']} processors shared by client, service and "
        f"database; load of the machine {machine['load_before']:.1f} before and "
        f"{machine['load_after']:.1f} after. All subjects of a comparison in turn over the same "
        f"rows, top 10; medians of {effort['rounds']} rounds.",
        "",
    ]
    if "modes" in result:
        lines += modes(result["modes"])
    if "references" in result:
        lines += _references(result["references"], effort)
    return "\n".join(lines) + "\n"


def _references(result: dict[str, Any], effort: dict[str, Any]) -> list[str]:
    lines = [
        "# Semantic search beside references",
        "",
        f"{result['memories']:,} memories, same search for all, a, b and d in SQL of one shape; "
        f"rounds of {effort['seconds']:g} s. CPU is that of the serving "
        "process and of the database per request; a share is the median of the rounds' own shares.",
        "",
    ]
    for size, by_callers in result["search"].items():
        for callers, cell in by_callers.items():
            lines += _cell(int(size), callers, cell)
    lines += _goal(result)
    lines += _where(result["where_the_time_goes"])
    return lines + _use(result)


def _cell(size: int, callers: str, cell: dict[str, Any]) -> list[str]:
    shares = cell["kemem_share"]
    lines = [
        f"## User of {size:,} memories, {callers} caller{'s' if callers != '1' else ''}",
        "",
        "| subject | requests/s | p50 ms | p95 ms | CPU ms | of database | client's share "
        "| KeMem / it |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, one in cell["subjects"].items():
        share = f"{shares[name]:.2f}" if name in shares else ""
        spent = f"{one['database_cpu_ms']:.2f}" if one["database_cpu_ms"] else ""
        lines.append(
            f"| {NAMES[name]} | {one['per_second']:,.0f} | {one['p50_ms']:.2f} "
            f"| {one['p95_ms']:.2f} | {one['server_cpu_ms']:.2f} "
            f"| {spent} | {one['client_share']:.0%} | {share} |"
        )
    return [*lines, ""]


def _goal(result: dict[str, Any]) -> list[str]:
    lines = [
        f"## Goal: at least {GOAL} of (b) with 16 callers",
        "",
        "| memories of the user | b, text embedded | b, vector given | b, tuned | b, six fields |",
        "|--:|--:|--:|--:|--:|",
    ]
    for size, by_callers in result["search"].items():
        shares = by_callers["16"]["kemem_share"]
        if "asyncpg_text" not in shares:
            continue
        columns = ("asyncpg_text", "asyncpg_vector", "asyncpg_tuned", "asyncpg_lean")
        lines.append(
            f"| {int(size):,} | " + " | ".join(f"{shares[name]:.2f}" for name in columns) + " |"
        )
    reached = ", ".join(
        f"{by_callers['16']['subjects']['kemem']['per_second']:,.0f} among {int(size):,}"
        for size, by_callers in result["search"].items()
    )
    return [
        *lines,
        "",
        f"Text searches per second of the whole product, 16 callers: {reached} memories of the "
        f"user asked about, {result['memories']:,} in the table.",
        "",
    ]


def _where(pieces: dict[str, dict[str, float]]) -> list[str]:
    lines = [
        "## Where the time goes",
        "",
        "One semantic search for a user of 100 memories, one caller, inside the process, no "
        "socket.",
        "",
        "| piece | wall µs | CPU µs |",
        "|---|--:|--:|",
    ]
    lines += [
        f"| {name} | {one['wall_us']:.0f} | {one['cpu_us']:.0f} |" for name, one in pieces.items()
    ]
    rest = {
        unit: pieces["whole request"][unit]
        - pieces["key look-up (round trip)"][unit]
        - pieces["body parsed and validated"][unit]
        - pieces["search service, with all it calls"][unit]
        - pieces["hits as JSON"][unit]
        - pieces["log line"][unit]
        for unit in ("wall_us", "cpu_us")
    }
    lines.append(
        f"| the rest: FastAPI, middleware, metrics | {rest['wall_us']:.0f} | {rest['cpu_us']:.0f} |"
    )
    return [*lines, ""]


def _use(result: dict[str, Any]) -> list[str]:
    use = result["use"]
    before, after = use["before"], use["after"]
    named = use["subjects"]
    updated, hot = after["updated"] - before["updated"], after["hot"] - before["hot"]
    return [
        "## Counting use",
        "",
        f"Users of 1,000 memories, 16 callers: {named['kemem']['per_second']:,.0f} requests/s with "
        f"it and {named['kemem_no_use']['per_second']:,.0f} without, a share of "
        f"{use['kemem_share']['kemem_no_use']:.2f}. Meanwhile {updated:,} counts were written, "
        f"{hot:,} of them without touching an index; the table went from "
        f"{before['table_bytes'] / 1e6:.0f} to {after['table_bytes'] / 1e6:.0f} MB, its indexes "
        f"from {before['index_bytes'] / 1e6:.0f} to {after['index_bytes'] / 1e6:.0f} MB, and "
        f"autovacuum ran {after['autovacuums'] - before['autovacuums']} times.",
        "",
    ]
