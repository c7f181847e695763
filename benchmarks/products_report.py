"""The comparison with other products, as a page."""

from collections.abc import Mapping
from typing import Any

MINIMAL = "minimal"
OURS = ("KeMem", "KeMem semantic")


def markdown(result: Mapping[str, Any]) -> str:
    """Calls per second and CPU of every product, and KeMem's ratio to each."""
    names = list(result["resident_mb"]["idle"])
    names.insert(names.index("KeMem") + 1, "KeMem semantic")
    effort = result["effort"]
    lines = [
        "# KeMem beside other products",
        "",
        f"{result['machine']['cores']} cores for service, client and PostgreSQL together; medians "
        f"of {effort['rounds']} rounds in turn. Large users have {effort['middle']:,} and "
        f"{effort['large']:,} memories, small ones {effort['small']}. The same embedder in each "
        "process, no model.",
        "",
        "Calls per second (CPU of the service in ms per call):",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'--:|' * len(names)}",
        *(
            f"| {row} | {' | '.join(_cell(figures.get(name)) for name in names)} |"
            for row, figures in result["rows"].items()
        ),
        "| resident MB, idle / loaded | "
        + " | ".join(
            f"{result['resident_mb']['idle'][name]:.0f} / "
            f"{result['resident_mb']['loaded'][name]:.0f}"
            if name in result["resident_mb"]["idle"]
            else "–"
            for name in names
        )
        + " |",
        "",
        "KeMem's calls per second as a multiple of each:",
        "",
        "| | " + " | ".join(name for name in names if name not in OURS) + " |",
        "|---|" + "--:|" * (len(names) - 2),
    ]
    for row, figures in result["rows"].items():
        for ours in OURS:
            if ours in figures:
                label = row if ours == "KeMem" else f"{row}, semantic"
                ratios = [_ratio(figures, ours, name) for name in names if name not in OURS]
                lines.append(f"| {label} | {' | '.join(ratios)} |")
    return "\n".join([*lines, ""])


def _cell(figures: Mapping[str, float] | None) -> str:
    if figures is None:
        return "–"
    return f"{figures['per_second']:,.0f} ({figures['server_cpu_ms']:.2f})"


def _ratio(figures: Mapping[str, Mapping[str, float]], ours: str, other: str) -> str:
    if other not in figures:
        return "–"
    return f"{figures[ours]['per_second'] / figures[other]['per_second']:.2f}"
