"""An erasure names every table that hangs on what it removes, so that its receipt is whole."""

from typing import Any

import pytest

from app.governance.privacy.holdings_sql import Holdings
from app.governance.tables import TABLES

OWNERS = {"sessions": "of_session", "users": "of_user", "agents": "of_agent"}
ALL = {**OWNERS, "projects": "of_project"}

# What hangs on what is somebody's: its rows go with those.
PARENTS = {
    "users": {
        "blocks", "folders", "files", "graph_entities", "memories", "profiles", "saver_checkpoints",
        "sessions", "store_items",
    },
    "projects": {"folders", "files", "graph_entities", "memories", "profiles"},
    "agents": {
        "blocks", "folders", "files", "graph_entities", "memories", "saver_checkpoints", "sessions",
        "store_items",
    },
    "sessions": {"blocks", "memories", "saver_checkpoints"},
}  # fmt: skip

STAY = {
    # No agent has a block of a session.
    "sessions": {"agent_blocks"},
    # Projects are shared: who leaves does not take them along.
    "users": {"projects"},
    "agents": {"users", "projects", "project_members"},
    # They only lose the project, or its place in the conversation.
    "projects": {"sessions", "memories"},
}


def referring(target: str) -> set[str]:
    """Tables with a foreign key to `target`."""
    return {
        table.__tablename__
        for table in TABLES
        for constraint in table.__table__.foreign_key_constraints  # type: ignore[attr-defined] # a Table, which the stubs call FromClause
        if constraint.referred_table.name == target
    }


def holdings(target: str) -> Any:
    return getattr(Holdings("acme"), ALL[target])("one")


def named(target: str) -> set[str]:
    return {table.__tablename__ for _, table, _ in holdings(target)}


@pytest.mark.parametrize("target", ALL)
def test_every_table_that_refers_to_it_is_named(target: str) -> None:
    assert referring(target) - STAY[target] <= named(target)


@pytest.mark.parametrize(
    ("target", "parent"), [(target, one) for target in PARENTS for one in sorted(PARENTS[target])]
)
def test_what_hangs_on_what_is_theirs_goes_too(target: str, parent: str) -> None:
    own = referring(parent)
    assert own

    assert own - STAY[target] <= named(target)


@pytest.mark.parametrize("target", ALL)
def test_every_parent_that_goes_is_among_those(target: str) -> None:
    """A table with children of its own, once it is named, brings them here."""
    parents = {one for one in named(target) if referring(one) - STAY[target]} - {target}
    tables = {"api_keys", "webhooks"}

    assert parents - tables <= PARENTS[target] | {"blocks", "memories", "sessions"}


def test_what_hangs_on_blocks_goes_with_their_user() -> None:
    own = referring("blocks")
    assert len(own) >= 3

    assert own <= named("users")


@pytest.mark.parametrize("target", ALL)
def test_no_name_of_a_receipt_stands_for_two_conditions(target: str) -> None:
    names = [name for name, _, _ in holdings(target)]

    assert len(set(names)) == len(names)
