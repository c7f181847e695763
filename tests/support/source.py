"""The source files of this repository, parsed for the tests that hold rules of the code."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


@cache
def modules(folder: str = "app") -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    return _trees(path.relative_to(ROOT).parts[0])[path]


@cache
def _trees(folder: str) -> dict[Path, ast.Module]:
    """They stay to the end: looking for garbage among them takes a second each time."""
    gc.collect()
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in modules(folder)}
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


@cache
def imports(path: Path) -> tuple[tuple[str, set[str]], ...]:
    """Modules that a file imports, each with the names it takes."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, set[str]]]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, set()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names, module = {alias.name for alias in node.names}, node.module or ""
            if (ROOT / module.replace(".", "/")).is_dir():
                yield from ((f"{module}.{name}", set()) for name in names)
            else:
                yield module, names
