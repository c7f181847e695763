"""Where the service is, which key is used, and where that key never goes."""

import inspect
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kemem import ConfigurationError, Memory
from kemem.address import DEFAULT_URL, find_service, key_file
from tests.support.flaky_server import flaky_server, says
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
ITEM = says({"memory_id": "mem_1", "content": "Tea."})


@pytest.fixture
def folder(tmp_path: Path) -> dict[str, str]:
    """An environment in which `kemem serve` has kept its key."""
    (tmp_path / "key").write_text("kem_local\n")
    return {"MEMORY_DATA_DIR": str(tmp_path)}


def test_argument_overrides_environment_and_environment_overrides_key_file(folder) -> None:
    told = folder | {"KEMEM_URL": "http://10.0.0.7:8000", "KEMEM_API_KEY": "kem_told"}

    service = find_service("https://memory.example/", "kem_given", told)
    assert (service.base_url, service.key) == ("https://memory.example", "kem_given")
    service = find_service(None, None, told)
    assert (service.base_url, service.key) == ("http://10.0.0.7:8000", "kem_told")
    service = find_service(None, None, folder)
    assert (service.base_url, service.key) == (DEFAULT_URL, "kem_local")


def test_empty_variable_counts_as_unset(folder) -> None:
    service = find_service("", "", folder | {"KEMEM_URL": "", "KEMEM_API_KEY": ""})

    assert (service.base_url, service.key) == (DEFAULT_URL, "kem_local")


@pytest.mark.parametrize(
    "address",
    ["http://localhost:9", "http://LOCALHOST", "http://127.0.0.1", "http://127.3.4.5:80",
     "http://[::1]:8000", "https://localhost/kemem"],
)  # fmt: skip
def test_stored_key_is_used_for_this_machine(folder, address) -> None:
    assert find_service(address, None, folder).key == "kem_local"


@pytest.mark.parametrize(
    "address",
    ["http://10.0.0.5:8000", "http://memory.example", "http://localhost.example",
     "http://127.0.0.1.example", "http://0.0.0.0:8000", "http://[::]:8000", "http://127.1",
     "http://2130706433", "http://[::ffff:10.0.0.5]:8000", "http://localhost@evil.example",
     "http://127.0.0.1:8000@evil.example/", "http://evil.example/127.0.0.1",
     "http://evil.example\\@127.0.0.1/", "http://127.0.0.1#@evil.example",
     "http://evil.example?@127.0.0.1"],
)  # fmt: skip
def test_stored_key_is_not_used_for_other_machines(folder, address) -> None:
    with pytest.raises(ConfigurationError) as raised:
        find_service(address, None, folder)
    assert "kem_local" not in str(raised.value)

    with pytest.raises(ConfigurationError):
        find_service(None, None, folder | {"KEMEM_URL": address})


def test_missing_key_is_an_error_that_says_what_to_do(tmp_path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        find_service(None, None, {"MEMORY_DATA_DIR": str(tmp_path)})

    for word in ("KEMEM_API_KEY", "api_key", "make run", "kemem serve", str(tmp_path / "key")):
        assert word in str(raised.value)
    assert raised.value.code == "configuration"


def test_unreadable_key_file_is_an_error(tmp_path) -> None:
    (tmp_path / "key").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        find_service(None, None, {"MEMORY_DATA_DIR": str(tmp_path)})

    (tmp_path / "key").rmdir()
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        find_service(None, None, {"MEMORY_DATA_DIR": str(tmp_path)})


@pytest.mark.parametrize("key", ["kem a", "kem\nX-Other: 1", "kem\x00", "кем", "\t", "“kem”"])
def test_malformed_key_is_refused_and_not_shown(key, folder) -> None:
    with pytest.raises(ConfigurationError) as raised:
        find_service(None, key, folder)

    assert not key.strip() or key.strip() not in str(raised.value)
    assert "the argument api_key" in str(raised.value)


def test_white_space_around_a_key_is_removed(folder) -> None:
    assert find_service(None, " kem_x\n", folder).key == "kem_x"


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://h:1/", "http://h:1"), ("http://h:1/v1", "http://h:1"),
        ("http://h:1/v1/", "http://h:1"), ("https://h/kemem/", "https://h/kemem"),
        ("https://h/kemem/v1", "https://h/kemem"), (" http://h ", "http://h"),
    ],
)  # fmt: skip
def test_address_is_normalised(given, address) -> None:
    assert find_service(given, "kem_x", {}).base_url == address


@pytest.mark.parametrize(
    "address",
    ["localhost:8000", "memory.example", "ftp://h", "http://", "http://h:port",
     "unix:///tmp/x", "http://user:secret@h", "http://h?api_key=secret", "http://h/#secret"],
)  # fmt: skip
def test_malformed_address_is_refused_and_not_shown(address) -> None:
    with pytest.raises(ConfigurationError) as raised:
        find_service(address, "kem_x", {})

    assert "secret" not in str(raised.value)
    assert "KEMEM_URL" in str(raised.value) or "KEMEM_API_KEY" in str(raised.value)


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=kept | {"PYTHONPATH": str(ROOT)} | environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


FOLDERS = """
import json, os
from app.platform.embedded.data_folder import default_data_dir
from app.cli.first_key import key_file as of_service
from kemem.address import key_file
os.environ["HOME"] = "/home/somebody"
for user in USERS:
    if user is not None:
        os.seteuid(user)
    for chosen in (None, "/data/mine", "", "mine", " /data/mine "):
        os.environ.pop("XDG_DATA_HOME", None)
        if chosen is not None:
            os.environ["XDG_DATA_HOME"] = chosen
        print(json.dumps([str(of_service(default_data_dir())), str(key_file(os.environ))]))
"""


def test_key_file_is_where_the_service_stores_it() -> None:
    users = [None, 65534] if os.geteuid() == 0 else [None]
    done = run(f"USERS = {users}\n{FOLDERS}")
    assert done.returncode == 0, done.stderr

    lines = [json.loads(line) for line in done.stdout.splitlines()]

    assert len(lines) == 5 * len(users)
    for of_service, of_client in lines:
        assert of_client == of_service


def test_data_folder_variable_moves_the_key_file() -> None:
    assert key_file({"MEMORY_DATA_DIR": "/srv/memory"}) == Path("/srv/memory/key")
    assert key_file({"MEMORY_DATA_DIR": "~/memory"}) == Path.home() / "memory/key"


def test_requests_to_this_machine_bypass_the_proxy(tmp_path) -> None:
    (tmp_path / "key").write_text("kem_local")
    with flaky_server() as service, flaky_server() as proxy:
        service.otherwise = ITEM
        done = run(
            "from kemem import Memory\nprint(Memory().get('mem_1').content)",
            KEMEM_URL=service.address,
            MEMORY_DATA_DIR=str(tmp_path),
            HTTP_PROXY=proxy.address,
            http_proxy=proxy.address,
            ALL_PROXY=proxy.address,
        )
        assert done.stdout == "Tea.\n", done.stderr
        assert proxy.requests == []
        assert service.requests[0].headers["Authorization"] == "Bearer kem_local"


def test_requests_to_other_machines_use_the_proxy() -> None:
    with flaky_server() as proxy:
        proxy.otherwise = ITEM
        done = run(
            "from kemem import Memory\nprint(Memory().get('mem_1').content)",
            KEMEM_URL="http://memory.example",
            KEMEM_API_KEY="kem_x",
            http_proxy=proxy.address,
        )
        assert done.stdout == "Tea.\n", done.stderr
        assert proxy.requests[0].path == "http://memory.example/v1/memories/mem_1"


def test_repr_does_not_show_the_key(folder) -> None:
    with Memory("http://h", "kem_secret") as memory:
        assert repr(memory) == "<kemem.Memory http://h>"
        assert memory.base_url == "http://h"
        assert "kem_secret" not in repr(memory._service)
    assert "environ" in inspect.signature(find_service).parameters


def test_reading_the_key_does_not_change_the_file(folder, tmp_path) -> None:
    (tmp_path / "key").chmod(0o600)

    find_service(None, None, folder)

    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["key"]
