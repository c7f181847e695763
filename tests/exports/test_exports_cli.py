"""`kemem export` and `kemem import`: whole files, or a sentence."""

import gzip
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.import_export import checked
from app.cli.main import cli
from kemem.exports import BrokenExportError
from tests.support.flaky_server import Behaviour, FlakyServer, flaky_server
from tests.support.patience import PATIENCE

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

from cli_support import KEMEM, Service, embedded, environment, handed_on

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="km-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Service]:
    """Some three mebibytes, which nothing reads behind the back of the tests."""
    with embedded(folder / "data", env={"MEMORY_WORKER_ENABLED": "false"}) as running:
        with running.client() as client:
            for number in range(6):
                messages = [
                    {"role": "user", "content": f"Tree {number}, line {line}: " + "oak " * 2_500}
                    for line in range(40)
                ]
                body = {"user_id": f"user-{number}", "messages": messages}
                answer = client.post(
                    f"/sessions/talk-{number}/messages", json=body, timeout=PATIENCE
                )
                assert answer.status_code == 201, answer.text
        yield running


def called(service: Service, *arguments: str | Path, key: str | None = None) -> Result:
    """What a command says; a process of its own for each would take most of the time."""
    where = ["--url", service.address, "--key", key or service.key]
    kept = environment()
    env = {name: kept.get(name) for name in os.environ}
    return CliRunner().invoke(cli, [*map(str, arguments), *where], env=env)


@pytest.fixture
def run(service: Service) -> Run:
    def command(*arguments: str | Path, key: str | None = None) -> Result:
        return called(service, *arguments, key=key)

    return command


@pytest.fixture
def fresh(service: Service) -> str:
    """The key of a new tenant."""
    with service.client() as client:
        answer = client.post("/tenants", json={"tenant_name": "Fresh"})
        assert answer.status_code == 201, answer.text
        return answer.json()["key"]["key"]


@pytest.fixture(scope="module")
def file(service: Service, folder: Path) -> Path:
    path = folder / "all.ndjson"
    done = called(service, "export", "-o", path)
    assert done.exit_code == 0, done.stderr
    assert "rows in" in done.stderr
    return path


def rows_of(service: Service, key: str) -> list[bytes]:
    with service.client(key) as client:
        return client.get("/export").content.split(b"\n")[1:-2]


class TestExport:
    def test_the_file_is_whole_and_nobody_else_s(self, file: Path, folder: Path) -> None:
        assert file.stat().st_mode & 0o077 == 0
        assert file.read_bytes().split(b"\n")[-2].endswith(b'"type":"end"}')
        assert not list(folder.glob("*.part"))
        assert not list(folder.glob(".*.part"))

    def test_a_name_that_ends_with_gz_is_compressed(
        self, run: Run, file: Path, folder: Path
    ) -> None:
        packed = folder / "one.ndjson.gz"

        assert run("export", "--user", "user-3", "-o", packed).exit_code == 0

        text = gzip.decompress(packed.read_bytes())
        assert b"Tree 3" in text
        assert b"Tree 4" not in text

    def test_what_is_there_is_not_replaced_unasked(self, run: Run, file: Path) -> None:
        before = file.read_bytes()

        refused = run("export", "-o", file)

        assert refused.exit_code == 2
        assert "is there already" in refused.stderr
        assert file.read_bytes() == before

    def test_a_refusal_leaves_no_file(self, run: Run, folder: Path) -> None:
        refused = run("export", "--user", "nobody", "-o", folder / "nobody.ndjson")

        assert refused.exit_code == 1
        assert refused.stderr.startswith("kemem: 404 user_not_found")
        assert not list(folder.glob("*nobody*"))
        assert not list(folder.glob(".nobody*"))


class TestImport:
    def test_the_first_time_and_again(
        self, run: Run, service: Service, file: Path, fresh: str
    ) -> None:
        rows = file.read_bytes().split(b"\n")[1:-2]

        dry = run("import", file, "--dry-run", key=fresh)
        assert f"{len(rows):,} rows would be written" in dry.stderr
        assert rows_of(service, fresh) == []
        first = run("import", file, key=fresh)
        second = run("import", file, key=fresh)

        assert first.stderr.startswith(f"{len(rows):,} rows written, 0 were there, 0 left")
        assert second.stderr.startswith(f"0 rows written, {len(rows):,} were there, 0 left")
        assert rows_of(service, fresh) == rows

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda data: data[:-200],
            lambda data: data[: len(data) // 2],
            lambda data: b"\n".join(data.split(b"\n")[:-2]) + b"\n",
            lambda data: data.replace(b"Tree 5", b"Tree 6", 1),
            lambda data: b"\n".join(data.split(b"\n")[1:]),
            lambda data: data + data.split(b"\n")[1] + b"\n",
            lambda _data: b"",
            lambda _data: b"nonsense\n",
            lambda data: gzip.compress(data)[:-20],
            lambda data: gzip.compress(data)[:2] + b"nonsense",
        ],
        ids=range(10),
    )
    def test_a_file_that_was_cut_or_altered_is_refused(
        self, file: Path, folder: Path, spoil: Callable[[bytes], bytes]
    ) -> None:
        spoilt = folder / "spoilt"
        spoilt.write_bytes(spoil(file.read_bytes()))

        with pytest.raises(BrokenExportError):
            checked(spoilt)

    def test_before_anything_is_written(
        self, run: Run, service: Service, file: Path, folder: Path, fresh: str
    ) -> None:
        spoilt = folder / "spoilt"
        spoilt.write_bytes(file.read_bytes()[:-200])

        refused = run("import", spoilt, key=fresh)

        assert refused.exit_code == 1
        assert refused.stderr.startswith("kemem: The export ")
        assert "Traceback" not in refused.stderr
        assert rows_of(service, fresh) == []

    def test_a_killed_import_is_completed_by_the_next(
        self, run: Run, service: Service, file: Path, fresh: str, folder: Path
    ) -> None:
        """The second part is written, and who sent it is dead before the answer comes."""
        rows = file.read_bytes().split(b"\n")[1:-2]
        with flaky_server() as between:
            held, let_go = threading.Event(), threading.Event()
            between.otherwise = _forwards(between, service, held, let_go)
            process = subprocess.Popen(
                [*KEMEM, "import", str(file), "--url", between.address, "--key", fresh],
                cwd=folder,
                env=environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                assert held.wait(PATIENCE), "no second part came"
                assert process.poll() is None
            finally:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                let_go.set()
        part = rows_of(service, fresh)
        assert 0 < len(part) < len(rows)

        done = run("import", file, key=fresh)

        assert done.exit_code == 0, done.stderr
        assert f"{len(rows) - len(part):,} rows written, {len(part):,} were there" in done.stderr
        assert rows_of(service, fresh) == rows

    def test_a_conflict_is_told_with_what_differs(
        self, run: Run, service: Service, file: Path, fresh: str
    ) -> None:
        assert run("import", file, key=fresh).exit_code == 0
        with service.client(fresh) as client:
            answer = client.patch("/users/user-3", json={"user_name": "Ana"})
            assert answer.status_code == 200

        refused = run("import", file, key=fresh)
        skipped = run("import", file, "--on-conflict", "skip", key=fresh)

        assert refused.exit_code == 1
        assert "user user-3: differs in update_time, user_name, version" in refused.stderr
        assert "`--on-conflict skip`" in refused.stderr
        assert skipped.exit_code == 0
        assert "1 left as they are" in skipped.stderr

    def test_who_was_erased_stays_away_unless_asked_for(
        self, run: Run, service: Service, file: Path, fresh: str
    ) -> None:
        assert run("import", file, key=fresh).exit_code == 0
        with service.client(fresh) as client:
            gone = client.delete("/users/user-3", params={"hard": True, "confirm": True})
            assert gone.status_code == 200, gone.text

        refused = run("import", file, key=fresh)
        restored = run("import", file, "--restore-erased", key=fresh)

        assert refused.exit_code == 1
        assert refused.stderr.startswith("kemem: 409 erased: 1 user of this part was erased")
        assert "`--restore-erased` brings them back" in refused.stderr
        assert restored.exit_code == 0, restored.stderr
        assert rows_of(service, fresh) == file.read_bytes().split(b"\n")[1:-2]


def _forwards(
    between: FlakyServer, service: Service, held: threading.Event, let_go: threading.Event
) -> Behaviour:
    """Hands requests on, and keeps the answer to the second part back."""

    def behave(to: BaseHTTPRequestHandler) -> None:
        request = between.requests[-1]
        answered = handed_on(request, service)
        if sum("/import" in one.path for one in between.requests) == 2:
            held.set()
            let_go.wait(PATIENCE)
        answered(to)

    return behave
