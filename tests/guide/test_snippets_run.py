"""Requests and programs of the manual run against a service, block by block.

What cannot run is named with its reason: each entry must be a block that there is.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pypdf import PdfWriter

from tests.cli.cli_support import Service, embedded, environment
from tests.unit.test_snippets import BLOCKS, SHELL, Block, commands

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NOT_RUN = {
    ("gate.md", "decisions/gat_…"): "the id of a refusal",
    ("processors.md", "pip install"): "a package of the reader's",
    ("jobs.md", "job_…"): "the id of a dead job",
    ("evaluation.md", "my_questions.json"): "questions of the reader's",
    ("statistics.md", "mem_…"): "the ids of memories",
}
REQUESTS = [
    block for block in BLOCKS if block.language in SHELL and re.search(r"\bcurl\b", block.text)
]
PROGRAMS = [
    block
    for block in BLOCKS
    if block.language == "python"
    and block.text.startswith("from kemem import")
    and not re.search(r"openai|langchain|langgraph|llama|autogen", block.text)
]


def answer_of(block: Block) -> str:
    """The JSON that a console shows, on one line."""
    if block.language != "console":
        return ""
    typed = commands(block).splitlines()
    lines = [line for line in block.text.splitlines() if line.removeprefix("$ ") not in typed]
    return "".join(line.strip() for line in lines)


def pattern_of(shown: str) -> str:
    """What matches a piece of an answer: counts may differ, fractions may not."""
    return re.sub(r"(?<![\\\d.])\d+(?!\d|\\\.)", r"\\d+", re.escape(shown))


def left_out(block: Block) -> bool:
    return any(page == block.page and part in block.text for page, part in NOT_RUN)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with running() as found:
        yield found


@pytest.fixture(scope="module")
def another_service() -> Iterator[Service]:
    """For programs: a page makes the same things by requests and by Python."""
    with running() as found:
        yield found


@contextmanager
def running() -> Iterator[Service]:
    folder = Path(tempfile.mkdtemp(prefix="kc-", dir="/tmp"))
    folder.chmod(0o755)
    with embedded(folder / "data") as found:
        yield found
    shutil.rmtree(folder, ignore_errors=True)


def ran(service: Service, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = environment(
        {
            "KEMEM_URL": service.address,
            "KEMEM_API_KEY": service.key,
            "KEY": service.key,
            "PYTHONPATH": str(ROOT),
            "PATH": os.environ["PATH"],
        }
    )
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=600
    )


def test_blocks_that_cannot_run_are_few_and_there() -> None:
    for page, part in NOT_RUN:
        assert [block for block in REQUESTS if block.page == page and part in block.text], page
    assert sum(map(left_out, REQUESTS)) == len(NOT_RUN)
    assert len(REQUESTS) >= 15
    assert len(PROGRAMS) >= 3


@pytest.mark.parametrize(
    "block", [block for block in REQUESTS if not left_out(block)], ids=lambda block: block.page
)
def test_requests_of_a_block_succeed(block: Block, service: Service, tmp_path: Path) -> None:
    manual = PdfWriter()
    manual.add_blank_page(width=72, height=72)
    manual.write(tmp_path / "pump.pdf")
    typed = re.sub(r"(?m)^export KEMEM_URL=.*$", "", commands(block))
    typed = typed.replace("localhost:8000", service.address.removeprefix("http://"))
    begin = 'shopt -s expand_aliases\nset -e\ncurl() { command curl --fail-with-body "$@"; }\n'

    done = ran(service, ["bash", "-c", begin + typed], tmp_path)

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    "block",
    [block for block in REQUESTS if answer_of(block) and not left_out(block)],
    ids=lambda block: block.page,
)
def test_answers_of_a_block_are_those_of_the_service(
    block: Block, another_service: Service, tmp_path: Path
) -> None:
    typed = re.sub(r"(?m)^export KEMEM_URL=.*$", "", commands(block))
    said = ran(another_service, ["bash", "-c", typed], tmp_path).stdout

    expected = ".*?".join(map(pattern_of, answer_of(block).split("…")))
    assert re.search(expected, said, re.DOTALL), f"{expected}\n{said}"


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: block.page)
def test_programs_run(block: Block, another_service: Service, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    text = block.text
    if "await " in text or "async " in text:
        body = "".join(f"    {line}\n" for line in text.splitlines())
        text = f"import asyncio\nasync def main():\n{body}\nasyncio.run(main())\n"
    program.write_text(text, encoding="utf-8")

    done = ran(another_service, [sys.executable, str(program)], tmp_path)

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
