"""Every fenced block of the manual is read as what it says it is."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(r"^( *)```(\S*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SHELL = {"console", "bash", "sh"}
PARTS = {"", "text", "python", "json", "toml", "yaml", "sql", "ts", "typescript", "js", *SHELL}


class Block(NamedTuple):
    page: str
    language: str
    text: str


BLOCKS = [
    Block(page.name, match[2], re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE))
    for page in PAGES
    for match in FENCE.finditer(page.read_text(encoding="utf-8"))
]


def of(*languages: str) -> list[Block]:
    found = [block for block in BLOCKS if block.language in languages]
    assert found
    return found


def commands(block: Block) -> str:
    """What a reader types: of a console the lines behind `$`, and those that go on from them."""
    if block.language != "console":
        return block.text
    typed, goes_on = "", False
    for line in block.text.splitlines():
        if goes_on or line.startswith("$ "):
            typed += line.removeprefix("$ ") + "\n"
            goes_on = line.endswith("\\") or typed.count("'") % 2 == 1
    return typed


def whole(text: str) -> str:
    """JSON in which what was left out, written as `…` beside a comma or alone, is taken out."""
    text = re.sub(r",\s*…|…\s*,|(?<=[\[{])\s*…", "", text)
    return re.sub(r",(\s*[\]}])", r"\1", text)


def test_every_block_says_what_it_is() -> None:
    assert not [block for block in BLOCKS if block.language not in PARTS]
    assert len(BLOCKS) > 80


@pytest.mark.parametrize("block", of(*SHELL), ids=lambda block: block.page)
def test_commands_are_what_a_shell_reads(block: Block) -> None:
    typed = commands(block)
    assert typed, block

    done = subprocess.run(["bash", "-n"], input=typed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{typed}"


@pytest.mark.parametrize("block", of(*SHELL), ids=lambda block: block.page)
def test_bodies_of_commands_are_json(block: Block) -> None:
    for body in re.findall(r"-d '([^']*)'", commands(block)):
        json.loads(whole(body))


@pytest.mark.parametrize("block", of("json"), ids=lambda block: block.page)
def test_json_is_json(block: Block) -> None:
    text = whole(block.text)
    try:
        json.loads(text)
    except json.JSONDecodeError:
        for line in filter(None, text.splitlines()):
            json.loads(line)  # One document a line, as in an export.


@pytest.mark.parametrize("block", of("toml", "yaml"), ids=lambda block: block.page)
def test_configuration_is_what_its_reader_reads(block: Block) -> None:
    if block.language == "toml":
        assert tomllib.loads(block.text)
    else:
        assert list(yaml.safe_load_all(block.text))


def test_commands_of_kemem_exist() -> None:
    listing = (ROOT / "app/cli/main.py").read_text(encoding="utf-8")
    known = set(re.findall(r'^    "([\w-]+)": ListedCommand\(', listing, re.MULTILINE)) | {
        "--version"
    }
    called = {
        name
        for block in of(*SHELL)
        for name in re.findall(r"^(?:\.venv/bin/)?kemem ([\w-]+)", commands(block), re.MULTILINE)
    }

    assert len(called) > 10
    assert called <= known
