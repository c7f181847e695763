"""A client install is small: httpx and what that brings, and no more."""

import subprocess
import sys
import tomllib
from pathlib import Path

import kemem
from app.platform.version import VERSION
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]

CODE = """
import importlib.abc
import sys

ALLOWED = {"kemem", "httpx", "httpcore", "h11", "anyio", "certifi", "idna", "sniffio",
           "typing_extensions"}  # What httpx brings along.
refused = []


class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in ALLOWED or top in sys.stdlib_module_names:
            return None
        refused.append(top)
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refuse())
import asyncio
import kemem

memory = kemem.Memory("http://127.0.0.1:1", "kem_x", max_retries=0)
try:
    memory.search("tea", user_id="ana")
except kemem.ConnectionFailedError as error:
    assert error.code == "connection_failed"
memory.close()


async def main():
    async with kemem.AsyncMemory("http://127.0.0.1:1", "kem_x", max_retries=0) as other:
        try:
            await other.search("tea", user_id="ana")
        except kemem.ConnectionFailedError:
            print("ok")


asyncio.run(main())
assert not {"app", "pydantic", "numpy", "sqlalchemy"} & set(sys.modules)
"""


def test_both_clients_work_with_httpx_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == "ok\n"


def test_client_distribution_needs_httpx_alone_and_has_no_command_but_for_desktops() -> None:
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]

    assert project["name"] == "kemem-client"
    assert project["dependencies"] == ["httpx>=0.28"]
    # For desktops; `kemem` is the command of the service.
    assert project["scripts"] == {"kemem-mcp": "kemem.mcp:main"}


def test_service_distribution_cannot_be_published() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    # The package index refuses an upload with such a classifier.
    assert project["classifiers"] == ["Private :: Do Not Upload"]


def test_client_and_service_are_of_one_release() -> None:
    assert kemem.__version__ == VERSION
    assert (ROOT / "client" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_types_are_published() -> None:
    assert (ROOT / "kemem" / "py.typed").is_file()


def test_extras_are_optional_and_the_saver_needs_no_langchain() -> None:
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    code = """
import sys

sys.modules |= {"langchain": None, "agents": None}
from kemem.langgraph import KeMemSaver, KeMemStore

try:
    from kemem.langgraph import KeMemMiddleware
except ModuleNotFoundError as error:
    print(error.name)
try:
    import kemem.openai_agents
except ModuleNotFoundError as error:
    print(error.name)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout == "langchain.agents\nagents\n"
    extras = {"langgraph", "langchain", "openai-agents", "llama-index", "autogen"}
    assert project["optional-dependencies"].keys() == extras
