"""The files of the local model, for a platform that has no wheel of its package."""

import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts/install_local_model.py"
FILES = (
    "weights/l2_supercat_256.safetensors",
    "tokenizers/l2_supercat_tokenizer_config.json",
)


def test_local_model_is_installed_in_the_locked_version_with_its_hashes_on_every_platform():
    pinned = runpy.run_path(str(SCRIPT))["pinned"]
    lock = (
        "websockets==1.0 \\\n    --hash=sha256:aa\n    # via kemem\n"
        'wordllama==0.4.0 ; platform_machine != "aarch64" \\\n'
        "    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
        "    # via kemem-service (pyproject.toml)\nwrapt==2.0 \\\n    --hash=sha256:dd\n"
    )

    lines = pinned(lock)

    assert lines.split() == [
        "wordllama==0.4.0", "\\", "--hash=sha256:bb", "\\", "--hash=sha256:cc",
    ]  # fmt: skip
    assert pinned((ROOT / "requirements.txt").read_text()).count("--hash=") > 1
    with pytest.raises(SystemExit, match="no lines of wordllama"):
        pinned("numpy==2.4 \\\n    --hash=sha256:aa\n")


@pytest.mark.slow
def test_files_are_those_that_the_package_of_this_platform_has(tmp_path: Path):
    try:
        subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], check=True, timeout=300)
    except subprocess.CalledProcessError:
        pytest.skip("the registry of packages cannot be reached")

    [place] = find_spec("wordllama").submodule_search_locations
    for name in FILES:
        assert (tmp_path / "wordllama" / name).read_bytes() == (Path(place) / name).read_bytes()
