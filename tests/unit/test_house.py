"""The house plan as lists: who lives where, and who may import whom (house.md 1.3)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "app"

# A room may import the rooms to its left.
ROOMS = [
    "tenants", "agents", "users", "projects", "sessions", "messages", "memories", "usage",
    "graph", "profiles", "extraction", "compaction", "checkpoints", "blocks", "folders", "context",
    "tools", "feedback", "webhooks", "forgetting", "operations", "exports", "privacy",
]  # fmt: skip

# Workshops know no room. A workshop may import those listed with it.
WORKSHOPS = {
    "database": {"web"},
    "embedded": {"database"},
    "jobs": {"database", "outbox", "web"},
    "llm": {"text"},
    "outbox": {"database"},
    "parsing": {"text"},
    "processors": {"web"},
    "ranking": {"text"},
    "rules": {"llm", "text"},
    "text": set(),
    "web": {"database"},
}

# The command line sits above everything, as main.py does, and nobody imports it.
ABOVE = {"cli"}

# Inside a room, a file may import the files to its left.
FILES = [
    "errors", "saver_errors", "searchable", "models", "saver_models", "access", "quota",
    "statements",
    "slots", "policy_schemas", "schemas", "search_schemas", "window_schemas",
    "record_schemas", "state_schemas", "saver_schemas", "document_schemas",
    # Pure files, and pieces of a statement.
    "templates", "sections", "dialects", "assembling", "scene", "clearing", "composing",
    "policy", "compaction_order", "profile_order", "graph_order", "profile_slots", "window_sql",
    "window",
    "trimming", "pressure",
    "pairing", "filters", "gate", "ranking", "standards", "edits", "context_sql",
    "naming", "rendering", "candidates", "embedding", "store", "likeness", "merging",
    "visibility", "codes", "comparing_sql", "graph_sql", "search_sql", "timeline_sql", "cursors",
    "hybrid",
    "reranking", "verdicts", "retention", "eviction", "metrics", "capture", "indexing",
    "reading_order", "scheduling", "holdings",
    "addresses", "backoff", "signatures",
    # Pure too: what a model may call, and how it is answered.
    "arguments", "toolset", "paging", "telling",
    # Pure too: a run of extraction, from what a model proposed to what is asked of another.
    "decisions", "choosing", "grounds", "drafts", "documents", "judging", "planning", "upkeep",
    "waves", "work", "relating",
    "inference_order", "keeping", "branches", "packing", "saver_chunks", "saver_keeping",
    "saver_pages",
    # Pure too: what an export shows of which rows, and what a line of one may say.
    "nouns", "scopes", "encoding", "comparing", "vectors", "parts",
    # What reads and writes in a transaction of the caller's.
    "repository", "file_repository", "passage_repository", "import_repository", "owing",
    "records", "bucket_repository", "project_repository", "eviction_repository",
    "maintenance_repository", "vector_repository",
    "timeline",
    "neighbourhood", "agenda", "usage", "place", "processing", "duplicates", "amendments",
    "writing",
    "applying", "tending",
    "owner_repository", "speaker_repository", "graphing", "rereading", "tidying",
    "reading", "expiry", "answers", "window_repository", "storing", "state_repository", "opening",
    "approval_repository",
    "archive_repository", "keeper", "saver_repository", "saver_thread_repository",
    "saver_list_repository",
    "retention_repository",
    # What leaves the machine for a webhook.
    "targets", "sender",
    # Units of work: what several of them share, those of requests, those of the worker.
    "ledger", "pipeline", "compacting", "bulk_delete", "forgetting",
    "deriving", "filling", "earning", "handlers", "service", "importing", "import_service",
    "window_service", "saving", "equipping", "editing",
    "file_service", "passage_service", "finding", "annotating", "search", "extracting",
    "receiving", "regrouping",
    "recalling", "inferring",
    "state_service", "approval_service", "saver_service", "saver_thread_service", "archiving",
    "purge", "reembed", "housekeeping", "delivery", "jobs",
    "principal", "router", "project_router", "saver_router", "state_router",
]  # fmt: skip

# The one list that sees all rooms.
SEES_ROOMS = {"database/registry.py"}

# Single files above the rooms: from the inside out.
TOP = ["errors", "settings", "deployment", "providers", "runtime", "worker", "main", "serving"]

# They speak HTTP, and ask for what the process has opened.
HTTP_FILES = {"router", "project_router", "saver_router", "state_router", "principal"}
SEES_RUNTIME = HTTP_FILES | {"dependencies"}
SQL_FILES = {
    "repository", "records", "maintenance_repository", "vector_repository", "visibility", "usage",
    "idempotency",
    "scopes", "encoding", "import_repository",
    "keyset", "engine", "timeline", "neighbourhood", "agenda", "bucket_repository",
    "state_repository", "approval_repository", "archive_repository", "window_repository",
    "saver_repository", "saver_thread_repository", "saver_list_repository",
    "eviction_repository", "project_repository", "retention_repository", "holdings",
    "owner_repository", "speaker_repository", "file_repository", "passage_repository", "tidying",
}  # fmt: skip

# Each method of theirs is a unit of work.
BEGINNING = {
    "service", "importing", "import_service", "window_service", "saving", "editing", "inferring",
    "usage", "pipeline", "ledger",
    "bulk_delete", "forgetting", "file_service", "passage_service", "extracting", "search",
    "purge", "reembed", "housekeeping", "delivery", "jobs", "filling", "earning", "equipping",
    "state_service", "approval_service", "archiving", "compacting", "saver_service", "regrouping",
    "saver_thread_service",
    # In workshops.
    "engine", "migrate", "endings",
}  # fmt: skip

# Imports inside a function, each with what it would cost or break at the top of the file.
LAZY: dict[str, str] = {}

# House style asks at 50 and 400 lines which second thing has moved in; the guard leaves room.
LONGEST_FUNCTION = 60
LONGEST_MODULE = 450

# Longer modules, each with its reason: tables of words and patterns hold one thing however
# long they are.
LONG: dict[str, str] = {}


def sources() -> list[Path]:
    found = sorted(APP.rglob("*.py"))
    assert len(found) > 80
    return found


def where(path: Path) -> str:
    return path.relative_to(APP).as_posix()


def everywhere() -> dict[str, str]:
    """Text of the modules of the service and of its client, by path."""
    roots = [APP, APP.parent / "kemem"]
    return {
        path.relative_to(APP.parent).as_posix(): path.read_text(encoding="utf-8")
        for root in roots
        for path in root.rglob("*.py")
    }


def long_functions(text: str) -> set[str]:
    """Names of the functions that have more lines than one may, their docstring counted."""
    return {
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    }


def is_long(text: str) -> bool:
    return len(text.splitlines()) > LONGEST_MODULE


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Modules a file imports, inside functions too, each with the names it takes."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{where(path)} imports relatively"
            names = {alias.name for alias in node.names}
            module = node.module or ""
            if (APP.parent / module.replace(".", "/")).is_dir():
                yield from ((f"{module}.{name}", set()) for name in names)
            else:
                yield module, names
        elif isinstance(node, ast.Import):
            yield from ((alias.name, set()) for alias in node.names)


def fault(here: str, module: str) -> str | None:  # noqa: PLR0911 (one per sentence)
    """Why the file at `here` may not import the `app` module, or None when it may."""
    _, *parts = module.split(".")
    folder, _, file = here.removesuffix(".py").rpartition("/")
    other = parts[0] if parts else ""
    if other in TOP:
        inner = other == "errors" or (other == "runtime" and file in SEES_RUNTIME)
        allowed = inner or folder in ABOVE
        if not folder and file in TOP:
            allowed = TOP.index(other) < TOP.index(file)
        return None if allowed else "knows the process"
    if other in ABOVE:
        return None if folder in ABOVE else "imports the command line"
    if folder in ABOVE or not folder:
        return None
    if folder in WORKSHOPS:
        if other in ROOMS:
            return None if here in SEES_ROOMS else "is a workshop and knows a room"
        allowed = other == folder or other in WORKSHOPS[folder] or here in SEES_ROOMS
        return None if allowed else f"is not a workshop that may use {other}"
    if other in WORKSHOPS:
        return None
    if other != folder:
        right = ROOMS.index(other) > ROOMS.index(folder)
        return "imports a room to its right" if right else None
    right = FILES.index(parts[1]) >= FILES.index(file)
    return "imports a file to its right" if right else None


class TestImports:
    def test_they_point_left(self) -> None:
        wrong = [
            f"{where(path)} {reason}: {module}"
            for path in sources()
            for module, _ in imports(path)
            if module.startswith("app.") and (reason := fault(where(path), module))
        ]

        assert wrong == []

    @pytest.mark.parametrize(
        ("here", "module"),
        [
            ("users/service.py", "app.memories.models"),
            ("users/models.py", "app.users.service"),
            ("users/repository.py", "app.users.router"),
            ("usage/repository.py", "app.extraction.ledger"),
            ("extraction/jobs.py", "app.webhooks.delivery"),
            ("extraction/repository.py", "app.extraction.pipeline"),
            ("extraction/pipeline.py", "app.extraction.jobs"),
            ("webhooks/sender.py", "app.webhooks.delivery"),
            ("operations/service.py", "app.privacy.repository"),
            ("jobs/worker.py", "app.extraction.jobs"),
            ("outbox/repository.py", "app.webhooks.repository"),
            ("outbox/repository.py", "app.jobs.repository"),
            ("rules/extractor.py", "app.memories.gate"),
            ("rules/extractor.py", "app.database.engine"),
            ("llm/embedder_catalogue.py", "app.rules.extractor"),
            ("web/problems.py", "app.users.errors"),
            ("database/engine.py", "app.tenants.models"),
            ("text/normal_forms.py", "app.web.fields"),
            ("ranking/fusion.py", "app.memories.ranking"),
            ("llm/embedder_catalogue.py", "app.database.engine"),
            ("users/service.py", "app.runtime"),
            ("extraction/jobs.py", "app.worker"),
            ("users/service.py", "app.cli.main"),
            ("web/health.py", "app.runtime"),
            ("settings.py", "app.runtime"),
            ("runtime.py", "app.worker"),
            ("worker.py", "app.main"),
        ],
    )
    def test_the_guard_sees_what_points_right(self, here: str, module: str) -> None:
        assert fault(here, module)

    def test_every_folder_is_on_the_plan(self) -> None:
        folders = {path.parent.name for path in APP.glob("*/__init__.py")}

        assert folders == {*ROOMS, *WORKSHOPS, *ABOVE}

    def test_nothing_is_imported_inside_a_function(self) -> None:
        inside = {
            where(path)
            for path in sources()
            for function in ast.walk(tree(path))
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }

        assert inside == LAZY.keys()

    def test_packages_re_export_nothing(self) -> None:
        for path in APP.rglob("__init__.py"):
            [only] = tree(path).body
            assert isinstance(only, ast.Expr), f"{where(path)} holds more than its sentence"

    def test_the_client_knows_nothing_of_the_service(self) -> None:
        for path in (APP.parent / "kemem").rglob("*.py"):
            assert not [module for module, _ in imports(path) if module.split(".")[0] == "app"]


class TestPlaces:
    def test_http_is_spoken_at_the_door_alone(self) -> None:
        wrong = {
            where(path)
            for path in sources()
            for module, _ in imports(path)
            if module.split(".")[0] in {"fastapi", "starlette"}
            and path.parent.name != "web"
            and path.stem not in HTTP_FILES
            and path not in {APP / "main.py", APP / "serving.py"}
        }

        assert wrong == set()

    def test_statements_are_written_in_repositories_alone(self) -> None:
        verbs = {"select", "insert", "update", "delete", "Select", "Insert", "Update", "Delete"}
        wrong = {
            where(path)
            for path in sources()
            for module, names in imports(path)
            if module.split(".")[0] == "sqlalchemy" and names & (verbs | {"text"})
            and path.stem not in SQL_FILES
            # A table may name a default of its own.
            and not (path.stem.endswith("models") and not names & verbs)
        }  # fmt: skip

        assert wrong == set()

    def test_services_alone_open_transactions(self) -> None:
        """`begin` in a repository would split a unit of work in two."""
        wrong = {
            where(path)
            for path in sources()
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Attribute)
            and node.attr in {"begin", "commit", "rollback", "begin_nested"}
            and path.stem not in BEGINNING
            and path.parent.name not in ABOVE
        }

        assert wrong == set()

    def test_the_environment_is_read_in_one_place(self) -> None:
        readers = {
            where(path)
            for path in sources()
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Attribute)
            and node.attr in {"environ", "getenv"}
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
        }

        assert "settings.py" in readers
        # PostgreSQL's binaries run in an environment of their own.
        assert {one for one in readers if not one.startswith(("embedded/", "cli/"))} == {
            "settings.py"
        }

    def test_every_module_opens_with_a_sentence(self) -> None:
        for path in sources():
            assert ast.get_docstring(tree(path)), f"{where(path)} has no docstring"

    def test_nothing_is_patched_in_tests(self) -> None:
        words = ("monkey" + "patch", "mocker" + ".", "mock" + ".patch", "unittest" + ".mock")
        wrong = [
            f"{path.name}: {word}"
            for path in (APP.parent / "tests").rglob("*.py")
            for word in words
            if word in path.read_text(encoding="utf-8")
        ]

        assert wrong == []


class TestSizes:
    """What is read at one sitting stays understood: a second thing that moves in gets a name
    and a place of its own before the first is hidden behind it.
    """

    def test_no_function_is_longer_than_a_screen(self) -> None:
        wrong = {
            f"{name}: {one}" for name, text in everywhere().items() for one in long_functions(text)
        }

        assert wrong == set()

    def test_no_module_holds_two_things(self) -> None:
        assert {name for name, text in everywhere().items() if is_long(text)} == LONG.keys()

    def test_the_guards_count_to_the_last_line(self) -> None:
        allowed = "async def f():\n" + "    pass\n" * (LONGEST_FUNCTION - 1)

        assert not long_functions(allowed)
        assert long_functions(allowed + "    pass\n") == {"f"}
        assert not is_long("\n" * LONGEST_MODULE)
        assert is_long("\n" * (LONGEST_MODULE + 1))
