"""The TypeScript client: generated anew, checked, packed, and run against a service by Node.js."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from app.platform.version import VERSION
from kemem import AsyncMemory
from scripts.generate_typescript import CLIENT, generate
from tests.support.service import listening
from tests.support.working import working

ROOT = Path(__file__).parents[2]
GROUPS = (
    "blocks", "erasures", "folders", "forgetting", "graph", "profiles", "projects", "statistics",
)  # fmt: skip
ELSEWHERE = {"close": "nothing is held open"}
"""Methods of the Python client that the other has no use for."""

NAMES = """
import { Memory } from "./dist/index.js";
const memory = new Memory({ apiKey: "kem_x" });
const methods = (one) => {
  const names = [];
  for (let kind = one; kind !== Object.prototype; kind = Object.getPrototypeOf(kind))
    names.push(...Object.getOwnPropertyNames(kind));
  return names;
};
const found = { memory: methods(memory) };
for (const group of process.argv.slice(2)) found[group] = methods(memory[group]);
console.log(JSON.stringify(found));
"""
SNIPPET = re.compile(r"^```ts\n(.+?)^```$", re.MULTILINE | re.DOTALL)


def npm(*arguments: str, cwd: Path, **variables: str) -> str:
    done = subprocess.run(
        ["npm", *arguments], cwd=cwd, capture_output=True, text=True, timeout=600, check=False,
        env=os.environ | variables,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_versions_agree() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    locked = json.loads((CLIENT / "package-lock.json").read_text())

    assert package["version"] == locked["version"] == VERSION
    assert f'"{VERSION}"' in (CLIENT / "src/version.ts").read_text()
    # Pinned, and the lock names no registry.
    pins = package["dependencies"] | package["devDependencies"]
    assert not [one for one in pins.values() if not re.fullmatch(r"\d+\.\d+\.\d+", one)]
    assert "resolved" not in (CLIENT / "package-lock.json").read_text()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the client with its packages installed."""
    if shutil.which("npm") is None:
        pytest.skip("Left out: no Node.js with npm is installed.")
    copy = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(
        CLIENT, copy, ignore=shutil.ignore_patterns("node_modules", "build", "dist", "*.tgz")
    )
    done = subprocess.run(
        ["npm", "ci", "--silent"],
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        reached = subprocess.run(
            ["npm", "view", "npm", "version"], capture_output=True, check=False
        )
        if reached.returncode != 0:
            pytest.skip("Left out: npm reaches no registry.")
    assert done.returncode == 0, done.stdout + done.stderr
    return copy


@pytest.mark.slow
def test_types_are_what_the_document_makes(project: Path) -> None:
    committed = (CLIENT / "src/schema.ts").read_text()
    (project / "src/schema.ts").unlink()

    generate(project)

    assert (project / "src/schema.ts").read_text() == committed, "run `make typescript`"


@pytest.mark.slow
def test_package_holds_the_client_alone(project: Path) -> None:
    packed = json.loads(npm("pack", "--silent", "--json", cwd=project))[0]
    names = {file["path"] for file in packed["files"]}

    assert {"LICENSE", "README.md", "package.json", "dist/index.js", "dist/index.d.ts"} <= names
    rest = {name for name in names if not re.fullmatch(r"dist/\w+(\.d)?\.(js|ts)", name)}
    assert rest == {"LICENSE", "README.md", "package.json"}
    for name in names:
        text = (project / name).read_text()
        assert "registry" not in text.lower(), name
        assert "node:" not in text or name == "package.json", name
    # Types of others' packages are not needed to use it.
    assert (
        "openapi-typescript"
        not in json.loads((project / "package.json").read_text())["dependencies"]
    )


@pytest.mark.slow
def test_methods_have_the_names_of_the_python_client(project: Path) -> None:
    npm("run", "--silent", "build", cwd=project)
    script = project / "names.mjs"
    script.write_text(NAMES)
    there = json.loads(subprocess.check_output(["node", script, *GROUPS], text=True, cwd=project))

    def camel(name: str) -> str:
        first, *rest = name.rstrip("_").split("_")
        return first + "".join(part.capitalize() for part in rest)

    def methods(kind: type) -> set[str]:
        bases = [base for base in kind.__mro__ if base.__module__ != "kemem.deprecated"]
        found = {
            name
            for base in bases
            if base.__module__.startswith("kemem.")
            for name, member in vars(base).items()
            if callable(member) and not name.startswith("_")
        }
        return {camel(name) for name in found - ELSEWHERE.keys()}

    assert methods(AsyncMemory) - set(there["memory"]) == set()
    for group in GROUPS:
        kind = getattr(AsyncMemory, group).fget.__annotations__["return"]
        assert methods(kind) - set(there[group]) == set(), group


@pytest.mark.slow
async def test_its_tests_and_examples_pass_against_a_service(
    project: Path, app, runtime, dsn, acme
) -> None:
    """Examples of the documents are among the tests: one that throws fails."""
    npm("run", "--silent", "build", cwd=project)
    pages = (CLIENT / "README.md", ROOT / "docs/typescript.md")
    snippets = [one for page in pages for one in SNIPPET.findall(page.read_text())]
    assert len(snippets) >= 5
    for number, snippet in enumerate(snippets):
        (project / f"test/example_{number}.test.ts").write_text(snippet)
    async with listening(app) as port, working(runtime, dsn):
        output = await asyncio.to_thread(
            npm, "test", "--silent", cwd=project,
            KEMEM_URL=f"http://127.0.0.1:{port}", KEMEM_API_KEY=acme.key,
        )  # fmt: skip

    assert re.search(r"^# fail 0$", output, re.MULTILINE), output
    assert re.search(r"^# skipped 0$", output, re.MULTILINE), output
    passed = re.search(r"^# pass (\d+)$", output, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 30 + len(snippets)
