"""Which of the services that run on this machine a client means, and whose records it believes."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kemem import ConfigurationError
from kemem.address import DEFAULT_URL, find_service
from kemem.running_services import recorded_services, records_folder

Record = Callable[..., Path]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
NOBODY = 65534


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


@contextmanager
def opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield file
    finally:
        os.close(file)


@pytest.fixture
def record(environ: dict[str, str], tmp_path: Path) -> Iterator[Record]:
    """Writes the record of a service with a key of its own; a running one holds its lock."""
    folder = records_folder(environ)
    folder.mkdir(parents=True)
    with ExitStack() as stack:

        def write(name: str, url: str, *, running: bool = True) -> Path:
            data_dir = tmp_path / name
            data_dir.mkdir()
            (data_dir / "key").write_text(f"kem_{name}\n")
            file = stack.enter_context(opened(folder / f"{name}.json"))
            os.write(
                file, json.dumps({"base_url": url, "data_dir": str(data_dir), "pid": 1}).encode()
            )
            if running:
                fcntl.flock(file, fcntl.LOCK_EX)
            return data_dir

        yield write


def test_only_running_service_is_found_with_its_key(environ, record) -> None:
    record("a", "http://127.0.0.1:8001")

    service = find_service(None, None, environ)

    assert (service.base_url, service.key) == ("http://127.0.0.1:8001", "kem_a")


def test_several_running_services_are_an_error_that_names_them(environ, record) -> None:
    folders = [record("a", "http://127.0.0.1:8001"), record("b", "http://127.0.0.1:8002")]

    with pytest.raises(ConfigurationError) as raised:
        find_service(None, None, environ)

    told = str(raised.value)
    assert all(word in told for word in ("8001", "8002", *map(str, folders)))
    assert "KEMEM_URL" in told
    assert "kem_" not in told


@pytest.mark.parametrize("name", ["a", "b"])
def test_data_folder_says_which_service_is_meant(environ, record, name) -> None:
    folders = {"a": record("a", "http://127.0.0.1:8001"), "b": record("b", "http://127.0.0.1:8002")}

    service = find_service(None, None, environ | {"MEMORY_DATA_DIR": str(folders[name])})

    assert service.key == f"kem_{name}"
    assert service.base_url == {"a": "http://127.0.0.1:8001", "b": "http://127.0.0.1:8002"}[name]


def test_data_folder_that_is_named_is_not_replaced_by_a_running_one(environ, record, tmp_path):
    record("a", "http://127.0.0.1:8001")
    (tmp_path / "key").write_text("kem_named")

    service = find_service(None, None, environ | {"MEMORY_DATA_DIR": str(tmp_path)})

    assert (service.base_url, service.key) == (DEFAULT_URL, "kem_named")


@pytest.mark.skipif(os.geteuid() == 0, reason="root's default folder is one for all")
def test_service_of_the_default_folder_goes_before_others(environ, record, tmp_path):
    record("a", "http://127.0.0.1:8001")
    record("kemem", "http://127.0.0.1:8002")

    assert find_service(None, None, environ | {"XDG_DATA_HOME": str(tmp_path)}).key == "kem_kemem"


@pytest.mark.parametrize("address", ["http://127.0.0.1:8002", "http://localhost:8002/v1"])
def test_address_says_which_key_is_used(environ, record, address) -> None:
    record("a", "http://127.0.0.1:8001")
    record("b", "http://127.0.0.1:8002")

    assert find_service(address, None, environ).key == "kem_b"
    assert find_service(None, None, environ | {"KEMEM_URL": address}).key == "kem_b"


def test_given_key_and_address_go_before_what_runs(environ, record) -> None:
    record("a", "http://127.0.0.1:8001")
    told = {"KEMEM_URL": "http://127.0.0.1:8001", "KEMEM_API_KEY": "kem_told"}

    assert find_service(None, None, environ | told).key == "kem_told"
    service = find_service(None, "kem_given", environ)
    assert (service.base_url, service.key) == ("http://127.0.0.1:8001", "kem_given")


def test_key_of_a_service_on_a_public_address_goes_there_alone_and_past_proxies(environ, record):
    record("a", "http://10.0.0.5:8000")

    assert find_service("http://10.0.0.5:8000", None, environ).is_local
    for other in ("http://10.0.0.6:8000", "http://10.0.0.5:8001", "https://10.0.0.5:8000"):
        with pytest.raises(ConfigurationError, match="not sent to other machines"):
            find_service(other, None, environ)


def test_killed_service_is_an_error_that_says_so(environ, record, tmp_path) -> None:
    folder = record("a", "http://127.0.0.1:8001", running=False)
    environ |= {"MEMORY_DATA_DIR": str(folder)}

    with pytest.raises(ConfigurationError, match="not running any more") as raised:
        find_service(None, None, environ)

    assert str(folder) in str(raised.value)
    # Whoever gives a key may mean a service that records nothing.
    assert find_service(None, "kem_given", environ).base_url == DEFAULT_URL


@pytest.mark.parametrize("text", ["", "{", "[]", '{"base_url": 1}', '{"pid": "x"}', "\x00"])
def test_damaged_record_is_left_out(environ, record, text) -> None:
    record("a", "http://127.0.0.1:8001")
    (records_folder(environ) / "c.json").write_text(text)

    assert find_service(None, None, environ).key == "kem_a"


@needs_root
def test_record_of_another_user_is_left_out(environ, record) -> None:
    record("a", "http://127.0.0.1:8001")
    assert len(recorded_services(environ)) == 1

    os.chown(records_folder(environ) / "a.json", NOBODY, NOBODY)

    assert recorded_services(environ) == []


def test_linked_record_is_left_out(environ, record) -> None:
    record("a", "http://127.0.0.1:8001")
    folder = records_folder(environ)
    (folder / "a.json").rename(folder / "elsewhere")
    (folder / "a.json").symlink_to(folder / "elsewhere")

    assert recorded_services(environ) == []


@needs_root
def test_key_of_another_user_is_refused_and_not_shown(environ, record) -> None:
    folder = record("a", "http://127.0.0.1:8001")
    os.chown(folder / "key", NOBODY, NOBODY)

    with pytest.raises(ConfigurationError, match="no file of this user") as raised:
        find_service(None, None, environ)

    assert "kem_a" not in str(raised.value)


def test_named_pipe_in_place_of_the_key_is_refused(environ, record) -> None:
    folder = record("a", "http://127.0.0.1:8001")
    (folder / "key").unlink()
    os.mkfifo(folder / "key")

    with pytest.raises(ConfigurationError, match="cannot be read"):
        find_service(None, None, environ)
