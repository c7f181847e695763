"""The Compose file, as far as it can be checked without Docker."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from cli_support import environment

from app.settings import Settings, variable

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
KEMEM = ("migrate", "first-key", "api", "worker")


def test_compose_file_is_valid_by_the_published_schema() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec",
         str(ROOT / "docker-compose.yml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", KEMEM)
def test_settings_come_from_the_file_but_for_those_of_a_container(name: str) -> None:
    service = COMPOSE["services"][name]
    fixed = service["environment"]

    assert service["env_file"] == [{"path": ".env", "required": False}]
    assert fixed.keys() - {"POSTGRES_PASSWORD"} <= {variable(one) for one in Settings.model_fields}
    # The owner's password and URL reach nobody who serves, even where .env has them.
    emptied = ("DATABASE_URL", "MEMORY_MIGRATION_URL", "POSTGRES_PASSWORD")
    assert [fixed[one] for one in emptied] == ["", "", ""]
    assert (fixed["MEMORY_HOST"], fixed["MEMORY_PORT"]) == ("0.0.0.0", "8000")
    assert fixed["MEMORY_WORKER_ENABLED"] == "${MEMORY_WORKER_ENABLED:-false}"
    assert (service["cap_drop"], service["mem_limit"]) == (["ALL"], "${KEMEM_MEMORY:-2g}")
    owners = [one for one in service["volumes"] if one.startswith("owner_login:")]
    assert len(owners) == (name == "migrate")


def test_an_empty_variable_is_as_if_it_were_not_set(tmp_path: Path) -> None:
    asked = "from app.settings import load_settings as of; s = of(); print(s.database_url, s.host)"
    fixed = {
        name: value
        for name, value in COMPOSE["services"]["api"]["environment"].items()
        if "$" not in value
    }

    done = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=tmp_path, env=environment(fixed | {"PYTHONPATH": str(ROOT)}), text=True,
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip

    assert done.stdout == "None 0.0.0.0\n"


def test_postgres_has_no_port_outside() -> None:
    assert [name for name, one in COMPOSE["services"].items() if "ports" in one] == ["api"]


@pytest.mark.parametrize("owner", [True, False])
def test_entrypoint_hands_on_the_logins_that_it_is_given(tmp_path: Path, owner: bool) -> None:
    [shell, flags, script, word] = COMPOSE["services"]["migrate"]["entrypoint"]
    (tmp_path / "serving").mkdir()
    (tmp_path / "serving/password").write_text("s3/#@:%? ü")
    if owner:
        (tmp_path / "owner").mkdir()
        (tmp_path / "owner/password").write_text("o3/#@:%? ü\n")
    told = tmp_path / "kemem"
    told.write_text('#!/bin/sh\necho "$DATABASE_URL|$MEMORY_MIGRATION_URL|$*"\n')
    told.chmod(0o755)

    done = subprocess.run(
        [shell, flags, script.replace("$$", "$").replace("/logins/", f"{tmp_path}/"), word,
         "keys", "first"],
        env={
            "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.defpath}",
            "MEMORY_MIGRATION_URL": "",
        },
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    at = "postgres:5432/kemem"
    rest = "%2F%23%40%3A%25%3F%20%C3%BC"
    migration = f"postgresql://kemem:o3{rest}@{at}" if owner else ""
    assert done.stdout == f"postgresql://kemem_serving:s3{rest}@{at}|{migration}|keys first\n"


@pytest.fixture
def compose_logins(tmp_path):
    """What Compose runs before everything else, with the volumes in a folder; their passwords."""
    service = COMPOSE["services"]["logins"]
    [script] = service["command"]
    for login in ("owner", "serving"):
        (tmp_path / "logins" / login).mkdir(parents=True)

    def run(password=""):
        subprocess.run(
            [*service["entrypoint"], script.replace("$$", "$")],
            env={"PATH": os.defpath, "ROOT": str(tmp_path), "POSTGRES_PASSWORD": password},
            check=True,
        )
        kept = [tmp_path / "logins" / login / "password" for login in ("owner", "serving")]
        assert [one.stat().st_mode & 0o777 for one in kept] == [0o444, 0o444]
        return [one.read_text() for one in kept]

    return run


def test_compose_makes_the_passwords_of_two_logins_once(compose_logins):
    owner, serving = compose_logins()

    assert owner != serving
    assert min(len(owner), len(serving)) >= 32
    assert quote(owner + serving, safe="") == owner + serving
    assert compose_logins() == [owner, serving]
    assert compose_logins("chosen") == ["chosen", serving]


def test_compose_keeps_the_password_of_a_database_that_is_there(compose_logins, tmp_path):
    version = tmp_path / "var/lib/postgresql/18/docker/PG_VERSION"
    version.parent.mkdir(parents=True)
    version.write_text("18")

    owner, serving = compose_logins()

    assert owner == "kemem"
    assert len(serving) >= 32
