"""Unit tests stay what they are: they import no application, nor what would start one."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
APPLICATION = ("app.main", "app.runtime", "app.worker", "app.cli", "tests.support.fixtures")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_unit_tests_import_no_application() -> None:
    waiting = sorted((ROOT / "tests" / "unit").rglob("*.py"))
    seen = set(waiting)
    wrong = []
    while waiting:
        path = waiting.pop()
        for name in imported(path):
            if name in APPLICATION or name.startswith("app.cli."):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
            helper = ROOT.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("tests.") and helper.exists() and helper not in seen:
                seen.add(helper)
                waiting.append(helper)
    assert wrong == []
