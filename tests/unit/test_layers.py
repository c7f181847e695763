"""The layers of the service: a module imports what is on its own floor or below, never above."""

from typing import Final

import pytest

from tests.support.source import ROOT, imports, modules

LAYERS: Final = (
    "platform", "language", "identity", "conversation", "memory", "prompting", "governance",
    "integrations",
)  # fmt: skip
BELOW: Final = ("errors", "settings")
ABOVE: Final = (
    "deployment", "runtime", "builders", "worker", "main", "console", "evaluation", "cli",
)  # fmt: skip
FLOORS: Final = dict.fromkeys(BELOW, 0) | {name: n for n, name in enumerate(LAYERS + ABOVE, 1)}

# What a package may import of its own layer, so that no two of them grow into one.
SIBLINGS: Final = {
    "observability": {"version"},  # Spans name the release.
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
    "agents": {"tenants"},  # Everything belongs to a tenant and its keys.
    "users": {"tenants", "agents"},  # A user has a home agent.
    "projects": {"tenants", "agents", "users"},
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


def fault(here: str, module: str) -> str | None:
    """Why the module `here` may not import `module`, both `app.…`; None where it may."""
    (layer, *inner), (other, *there) = here.split(".")[1:], module.split(".")[1:]
    if FLOORS[other] > FLOORS[layer]:
        return f"{other} stands above {layer}"
    siblings = other == layer in LAYERS and there[0] != inner[0]
    if siblings and there[0] not in SIBLINGS.get(inner[0], ()):
        return f"{inner[0]} may not import {there[0]}"
    return None


def test_nothing_imports_what_stands_above_or_an_unlisted_sibling() -> None:
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules()}
    wrong = [
        f"{name} imports {module}: {why}"
        for path, name in names.items()
        for module, _ in imports(path)
        if module.startswith("app.") and (why := fault(name, module))
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("here", "module"),
    [
        ("app.identity.users.service", "app.memory.memories.models"),
        ("app.identity.users.service", "app.runtime"),
        ("app.identity.tenants.service", "app.identity.users.service"),
        ("app.platform.http.problems", "app.identity.users.schemas"),
        ("app.language.llm.tokens", "app.language.keyless.extractor"),
        ("app.errors", "app.platform.work.unit"),
        ("app.runtime", "app.builders.factory"),
        ("app.worker", "app.cli.main"),
    ],
)
def test_wrong_import_is_seen(here: str, module: str) -> None:
    assert fault(here, module)


def test_siblings_are_there() -> None:
    paths = [path.relative_to(ROOT).with_suffix("").parts for path in modules()]
    there = {path[2] for path in paths if len(path) > 2}

    assert {*SIBLINGS, *set().union(*SIBLINGS.values())} <= there


def test_siblings_form_no_ring() -> None:
    left = dict(SIBLINGS)
    while free := [name for name, wanted in left.items() if not wanted & left.keys()]:
        left = {name: wanted for name, wanted in left.items() if name not in free}

    assert left == {}


def test_client_knows_nothing_of_the_service() -> None:
    assert not [m for path in modules("kemem") for m, _ in imports(path) if m[:4] == "app."]
