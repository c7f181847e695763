"""How a benchmark's result is shown and kept."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def publish(result: Mapping[str, Any], report: str, out: Path) -> None:
    """Print the report, and write it as Markdown beside the figures, which go to `out` as JSON."""
    print(report)
    out.parent.mkdir(parents=True, exist_ok=True)
    figures = json.dumps(result, indent=1, ensure_ascii=False)
    out.write_text(figures + "\n", encoding="utf-8")
    out.with_suffix(".md").write_text(report, encoding="utf-8")


def load_of(result: Mapping[str, Any]) -> str:
    """A sentence about the load under which it was measured: `load_before`, `load_after`."""
    return (
        f"Load of the machine ({os.cpu_count()} processors), mean of a minute: "
        f"{result['load_before']:.1f} before, {result['load_after']:.1f} at the end."
    )
