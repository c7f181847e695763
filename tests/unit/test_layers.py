"""The layers of the service: who may import whom, and what belongs into which kind of module."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
LAYERS: Final = (
    "platform", "language", "identity", "conversation", "memory", "prompting", "governance",
    "integrations",
)  # fmt: skip
BELOW: Final = {"errors", "settings", "version"}
"""Modules that every layer may import, and that import none."""
ENTRIES: Final = (
    "deployment", "runtime", "factory", "worker", "main", "serving", "console", "evaluation", "cli",
)  # fmt: skip
"""What stands above the layers, each above those before it."""

# What a package may import of its own layer. Without the list two packages could grow together;
# it has no ring, which the last test of this class shows.
SIBLINGS: Final = {
    "http": {"database", "observability", "work"},  # Failures, metrics and kept answers are told.
    "embedded": {"database"},  # It has the two logins of any other.
    "database": {"observability"},  # What waits for a connection is told.
    "work": {"database"},  # A unit of work is a transaction.
    "outbox": {"database", "values"},  # An event names ids that callers chose.
    "jobs": {"database", "observability", "outbox"},  # A dead job is an event.
    "plugins": {"observability"},
    "llm": {"text"},
    "ranking": {"text"},
    "keyless": {"text", "llm"},  # It implements the protocols of models.
    "erasure": {"tenants"},
    "agents": {"tenants", "erasure"},  # Everything belongs to a tenant and its keys.
    "users": {"tenants", "erasure", "agents"},  # A user has a home agent.
    "projects": {"tenants", "erasure", "agents", "users"},
    "usage": {"tenants"},
    "messages": {"sessions"},
    "graph": {"memories"},  # Relations, profiles and feedback stand on memories.
    "profiles": {"memories"},
    "feedback": {"memories"},
    "extraction": {"memories", "graph"},  # A run writes both.
    "checkpoints": {"compaction"},  # An image holds the summaries.
    "context": {"blocks", "documents"},  # It shows them.
    "tools": {"blocks", "documents", "context"},  # It offers them as functions.
    "tables": {"privacy", "evaluations"},  # The list of every table.
    "exports": {"tables"},
    "operations": {"forgetting"},
}
NO_STATEMENTS: Final = {
    "select", "insert", "update", "delete", "text", "Select", "Insert", "Update", "Delete",
}  # fmt: skip
STATEMENT_KINDS: Final = ("repository", "_sql", "models")
OPENS_NOTHING: Final = ("repository", "_sql", "models", "schemas", "router", "errors")


@cache
def modules(folder: str = "app") -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    # Each node that is made could start a search for garbage, of which there is none.
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
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


def fault(here: str, module: str) -> str | None:  # noqa: PLR0911 (one for each rule)
    """Why the module `here`, a path below app/, may not import `module`; None where it may."""
    layer, *inner = here.removesuffix(".py").split("/")
    other, *there = module.split(".")[1:]
    if layer in BELOW:
        return None if other in BELOW else "everything imports it"
    if other in BELOW:
        return None
    if layer not in LAYERS:
        above = other in ENTRIES and ENTRIES.index(other) > ENTRIES.index(layer)
        return f"{other} stands above {layer}" if above else None
    if other not in LAYERS:
        return "is an entry point, above all layers"
    if LAYERS.index(other) > LAYERS.index(layer):
        return f"{other} stands above {layer}"
    if other == layer and there[0] != inner[0] and there[0] not in SIBLINGS.get(inner[0], set()):
        return f"{inner[0]} may not import {there[0]}"
    return None


class TestLayers:
    def test_nothing_imports_what_stands_above_or_an_unlisted_sibling(self) -> None:
        wrong = [
            f"{path.relative_to(ROOT)} imports {module}: {why}"
            for path in modules()
            for module, _ in imports(path)
            if module.startswith("app.")
            and (why := fault(path.relative_to(ROOT / "app").as_posix(), module))
        ]

        assert wrong == []

    @pytest.mark.parametrize(
        ("here", "module"),
        [
            ("identity/users/service.py", "app.memory.memories.models"),
            ("identity/users/service.py", "app.runtime"),
            ("identity/tenants/service.py", "app.identity.users.service"),
            ("platform/http/problems.py", "app.identity.users.errors"),
            ("language/llm/tokens.py", "app.language.keyless.extractor"),
            ("errors.py", "app.platform.work.errors"),
            ("runtime.py", "app.factory"),
            ("worker.py", "app.cli.main"),
        ],
    )
    def test_a_wrong_import_is_seen(self, here: str, module: str) -> None:
        assert fault(here, module)

    def test_every_package_stands_in_a_layer(self) -> None:
        packages = {path.parent for path in (ROOT / "app").rglob("*/__init__.py")}
        inner = {path.name for path in packages if path.parent != ROOT / "app"}

        assert {path.name for path in packages} - inner == {*LAYERS, "cli", "evaluation"}
        assert SIBLINGS.keys() <= inner | {"tables", "erasure"}

    def test_siblings_form_no_ring(self) -> None:
        left = dict(SIBLINGS)
        while free := [name for name, wanted in left.items() if not wanted & left.keys()]:
            left = {name: wanted for name, wanted in left.items() if name not in free}

        assert left == {}

    def test_the_client_knows_nothing_of_the_service(self) -> None:
        assert not [m for path in modules("kemem") for m, _ in imports(path) if m[:4] == "app."]


class TestKinds:
    def test_fastapi_is_imported_by_routers_alone(self) -> None:
        wrong = [
            str(path.relative_to(ROOT))
            for path in modules()
            for module, _ in imports(path)
            if module.split(".")[0] in {"fastapi", "starlette"}
            and not path.stem.endswith("router")
            # Who calls is a dependency of routes; the entry points make the application.
            and not path.is_relative_to(ROOT / "app/platform/http")
            and path.stem != "principal"
            and path.parent != ROOT / "app"
        ]

        assert wrong == []

    def test_statements_are_written_in_repositories_alone(self) -> None:
        wrong = [
            str(path.relative_to(ROOT))
            for path in modules()
            for module, names in imports(path)
            if module.split(".")[0] == "sqlalchemy"
            and names & NO_STATEMENTS
            and not path.stem.endswith(STATEMENT_KINDS)
            and not path.is_relative_to(ROOT / "app/platform")
        ]

        assert wrong == []

    def test_repositories_and_routers_open_no_transaction(self) -> None:
        wrong = [
            str(path.relative_to(ROOT))
            for path in modules()
            for node in nodes(path)
            if isinstance(node, ast.Attribute)
            and node.attr in {"begin", "commit", "rollback", "begin_nested"}
            and path.stem.endswith(OPENS_NOTHING)
        ]

        assert wrong == []


class TestModules:
    def test_every_module_opens_with_a_sentence(self) -> None:
        assert [str(path) for path in modules() if not ast.get_docstring(parsed(path))] == []

    def test_packages_re_export_nothing(self) -> None:
        for path in (ROOT / "app").rglob("__init__.py"):
            assert len(parsed(path).body) == 1, f"{path} holds more than its sentence"

    def test_our_own_modules_are_never_imported_inside_a_function(self) -> None:
        """Heavy libraries may be: they load when they are first used."""
        wrong = [
            f"{path.relative_to(ROOT)}:{node.lineno}"
            for path in modules()
            for function in nodes(path)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for module in (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
            )
            if module.split(".")[0] in {"app", "kemem", "migrations"}
        ]

        assert wrong == []

    def test_no_module_or_function_holds_two_things(self) -> None:
        """At 450 lines of a module and 60 of a function a second thing has moved in."""
        for path in (*modules(), *modules("kemem")):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 450, path
            for node in nodes(path):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    assert (node.end_lineno or 0) - node.lineno < 60, f"{path}: {node.name}"

    def test_the_environment_is_read_by_the_settings_alone(self) -> None:
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
        ]

        assert wrong == []

    def test_nothing_is_patched_in_tests(self) -> None:
        words = ("monkey" + "patch", "mocker" + ".", "mock" + ".patch", "unittest" + ".mock")
        wrong = [
            f"{path.name}: {word}"
            for path in modules("tests")
            for word in words
            if word in path.read_text(encoding="utf-8")
        ]

        assert wrong == []
