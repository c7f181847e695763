"""What every module keeps to: a sentence, a size, imports at the top, settings in one place."""

import ast
from pathlib import Path

from tests.support.source import ROOT, modules, nodes, parsed


def test_every_module_opens_with_a_sentence() -> None:
    assert [str(path) for path in modules() if not ast.get_docstring(parsed(path))] == []


def test_packages_re_export_nothing() -> None:
    for path in (ROOT / "app").rglob("__init__.py"):
        assert len(parsed(path).body) == 1, f"{path} holds more than its sentence"


def test_our_own_modules_are_never_imported_inside_a_function() -> None:
    """Heavy libraries may be: they load when they are first used."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules()
        for node in _inside_functions(path)
        for module in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
        if module.split(".")[0] in {"app", "kemem", "migrations"}
    ]

    assert wrong == []


def _inside_functions(path: Path) -> list[ast.Import | ast.ImportFrom]:
    functions = [
        range(node.lineno, (node.end_lineno or 0) + 1)
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [
        node
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any(node.lineno in lines for lines in functions)
    ]


def test_no_module_or_function_holds_two_things() -> None:
    """At 450 lines of a module and 60 of a function a second thing has moved in."""
    for path in (*modules(), *modules("kemem")):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 450, path
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 60, f"{path}: {node.name}"


def test_the_environment_is_read_by_the_settings_alone() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
        and node.attr in {"environ", "getenv"}
        and path.stem != "settings"
        # PostgreSQL's programs and the console have an environment of their own.
        and path.relative_to(ROOT / "app").parts[:2] != ("platform", "embedded")
        and path.relative_to(ROOT / "app").parts[0] != "cli"
        # The tokenizer can be told in no other way to make no threads.
        and path.stem != "wordllama_embedder"
    ]

    assert wrong == []


def test_nothing_is_patched_in_tests() -> None:
    words = ("monkey" + "patch", "mocker" + ".", "mock" + ".patch", "unittest" + ".mock")
    wrong = [
        f"{path.name}: {word}"
        for path in modules("tests")
        for word in words
        if word in path.read_text(encoding="utf-8")
    ]

    assert wrong == []
