"""What belongs into which kind of module."""

import ast
from typing import Final

from tests.support.source import ROOT, imports, modules, nodes

NO_STATEMENTS: Final = {
    "select", "insert", "update", "delete", "text", "Select", "Insert", "Update", "Delete",
}  # fmt: skip
STATEMENT_KINDS: Final = ("repository", "_sql", "models")
OPENS_NOTHING: Final = ("repository", "_sql", "models", "schemas", "router", "errors")


def test_fastapi_is_imported_by_routers_alone() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in modules()
        for module, _ in imports(path)
        if module.split(".")[0] in {"fastapi", "starlette"}
        and not path.stem.endswith("router")
        # Who calls is a dependency of routes; the entry points make the application and serve it.
        and not path.is_relative_to(ROOT / "app/platform/http")
        and path.stem != "principal"
        and path.parent not in {ROOT / "app", ROOT / "app/cli"}
    ]

    assert wrong == []


def test_statements_are_written_in_repositories_alone() -> None:
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


def test_repositories_and_routers_open_no_transaction() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
        and node.attr in {"begin", "commit", "rollback", "begin_nested"}
        and path.stem.endswith(OPENS_NOTHING)
    ]

    assert wrong == []
