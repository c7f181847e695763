"""The processes of one `kemem serve`: they begin and end together, and each may die."""

import asyncio
import os
import signal
from contextlib import contextmanager, suppress

import httpx
import psycopg
import pytest
from cli_support import assert_counted_together, embedded, eventually, is_running

from app.platform.embedded.attachment import attach
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

PARROT = {"user_id": "ana", "messages": [{"role": "user", "content": "I have a grey parrot."}]}


def order_reading(service):
    """Have a session read by a job; its id."""
    with service.client() as client:
        answer = client.post("/sessions/s/extract", json={})
        assert answer.status_code == 202, answer.text
        return answer.json()["job_id"]


def read_session(service):
    """A message is appended and read by a job."""
    with service.client() as client:
        answer = client.post("/sessions/s/messages", json=PARROT)
        assert answer.status_code == 201, answer.text
    job_id = order_reading(service)
    eventually(lambda: job(service, job_id)["status"] == "succeeded")


def job(service, job_id):
    with service.client() as client:
        return client.get(f"/jobs/{job_id}").json()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_processes_stop_with_the_first(data_dir, number):
    with embedded(data_dir) as service:
        eventually(lambda: "worker" in service.processes())
        others = service.everything()
        assert service.processes()["worker"] in others

        assert service.stop(number) == 0

        assert not any(is_running(pid) for pid in others)
        assert not service.log("process_died")


@contextmanager
def running_job(service):
    """A job that runs, and writes only after the block."""
    with service.client() as client:
        answer = client.post("/sessions/s/messages", json=PARROT)
        assert answer.status_code == 201, answer.text
    dsn = asyncio.run(attach(service.data_dir)).migration
    # The service may have stopped the database by the end of the block.
    with suppress(psycopg.errors.AdminShutdown), psycopg.connect(dsn) as connection:
        connection.execute("SET ROLE kemem_owner")
        connection.execute("LOCK TABLE extraction_runs IN SHARE MODE")
        job_id = order_reading(service)
        eventually(lambda: job(service, job_id)["status"] == "running")
        yield job_id


def test_a_job_that_runs_is_finished_before_the_end(data_dir):
    with embedded(data_dir) as service:
        with running_job(service):
            service.process.send_signal(signal.SIGTERM)
            eventually(lambda: not service.is_ready())
            assert is_running(service.processes()["worker"])
        assert service.process.wait(PATIENCE) == 0
        assert not service.log("jobs_returned")


def test_a_second_signal_gives_a_job_back(data_dir):
    with embedded(data_dir) as service, running_job(service):
        others = service.everything()
        service.process.send_signal(signal.SIGINT)
        eventually(lambda: not service.is_ready())
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(PATIENCE) == 0
        assert service.log("jobs_returned")
        assert not any(is_running(pid) for pid in others)


def test_a_killed_worker_is_started_again_and_its_job_taken_up(data_dir):
    with embedded(data_dir, env={"MEMORY_LEASE_SECONDS": "5"}) as service:
        with running_job(service) as job_id:
            first = service.processes()["worker"]
            os.kill(first, signal.SIGKILL)
            eventually(lambda: service.processes()["worker"] != first)
        eventually(lambda: job(service, job_id)["status"] == "succeeded")
        assert job(service, job_id)["attempts"] == 2
        (died,) = service.log("process_died")
        assert (died["process"], died["pid"], died["code"]) == ("worker", first, -9)
        assert service.stop() == 0


def test_jobs_go_on_when_nobody_can_start_the_worker_again(data_dir):
    with embedded(data_dir) as service:
        eventually(lambda: "worker" in service.processes())
        worker = service.processes()["worker"]
        os.kill(service.fork_server(), signal.SIGKILL)
        eventually(lambda: not is_running(worker))

        read_session(service)

        assert service.stop() == 0


def test_a_killed_service_leaves_no_process(data_dir):
    with embedded(data_dir, "--workers", "2") as service:
        eventually(lambda: {"api-2", "worker"} <= service.processes().keys())
        others = service.everything()
        service.process.kill()
        service.process.wait()
        eventually(lambda: not any(is_running(pid) for pid in others))
    (left,) = data_dir.glob("metrics-*")
    with embedded(data_dir) as service:
        assert left not in data_dir.glob("metrics-*")
        assert service.stop() == 0
    assert not list(data_dir.glob("metrics-*"))


def test_the_embedded_database_serves_several_processes(data_dir):
    with embedded(data_dir, "--workers", "2") as service:
        eventually(lambda: len(service.log("process_ready")) == 2)
        assert_counted_together(service)
        first = service.processes()["api-2"]
        os.kill(first, signal.SIGKILL)
        eventually(lambda: len(service.log("process_ready")) == 3)
        assert service.processes()["api-2"] != first
        # The first process takes none: whatever is answered now, the second one answers.
        os.kill(service.process.pid, signal.SIGSTOP)
        try:
            eventually(service.is_ready)
            with service.client() as client:
                assert client.get("/memories").status_code == 200
        finally:
            os.kill(service.process.pid, signal.SIGCONT)
        others = service.everything()
        assert service.stop() == 0
        assert not any(is_running(pid) for pid in others)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{service.address}/livez", timeout=PATIENCE, trust_env=False)


def test_one_process_does_everything_when_told(data_dir):
    with embedded(data_dir, "--workers", "0") as service:
        read_session(service)
        assert set(service.everything()) == set(service.postgres())
        assert service.stop() == 0
