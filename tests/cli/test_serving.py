"""`kemem serve` and the commands beside it, on one running service."""

import json
import os
import re
import signal
import stat
import subprocess

import httpx
import pytest
from cli_support import eventually, kemem

from tests.support.patience import PATIENCE


def test_the_greeting_names_what_is_needed(service):
    key_file = service.data_dir / "key"
    assert service.key == key_file.read_text().strip()
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert str(service.data_dir) in service.greeting
    assert (
        httpx.get(f"{service.address}/docs", timeout=PATIENCE, trust_env=False).status_code == 200
    )
    for line in service.errors.read_text().splitlines():
        assert service.key not in line
        assert "event" in json.loads(line)


def test_the_printed_block_works_when_pasted(service):
    start, end = (service.greeting.index(words) for words in ("export KEMEM_URL=", "Stop with"))
    block = service.greeting[start:end]
    done = subprocess.run(
        ["bash", "-e"], input=block, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    saved, found = (json.loads(line) for line in done.stdout.splitlines() if line)
    assert saved["results"][0]["event"] in {"ADD", "NONE"}
    assert found["results"][0]["content"] == "She drinks green tea in the morning."


def test_the_printed_link_signs_in_once(service):
    page, code = re.search(r"Dashboard +(\S+)#code=(\S+)", service.greeting).groups()
    assert page == f"{service.address}/dashboard"
    assert httpx.get(page, timeout=PATIENCE, trust_env=False).status_code == 200
    url, headers = f"{page}/sign-in", {"Authorization": f"Code {code}"}

    made = httpx.post(url, headers=headers, timeout=PATIENCE, trust_env=False)
    again = httpx.post(url, headers=headers, timeout=PATIENCE, trust_env=False)

    assert (made.status_code, again.json()["code"]) == (201, "used_sign_in_code")
    assert made.json()["scopes"] == ["admin", "operator"]
    with service.client(made.json()["key"]) as client:
        assert client.get("/tenants").status_code == 200
    assert code not in service.errors.read_text()


def test_a_second_start_on_the_folder_says_so(service):
    done = kemem("serve", "--data-dir", service.data_dir, cwd=service.data_dir.parent)
    assert done.returncode == 2
    assert f"pid {service.process.pid}" in done.stderr
    assert "--data-dir" in done.stderr


def console(service, *arguments):
    done = kemem(*arguments, "--data-dir", service.data_dir, "--json", cwd=service.data_dir.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_keys_made_and_revoked_at_the_console_count_at_once(service):
    created = console(
        service, "keys", "create", "--tenant", "default", "--scope", "read", "--name", "phone",
        "--user", "ana", "--expires-in-days", "3",
    )  # fmt: skip
    assert created["scopes"] == ["read"]
    with service.client(created["key"]) as client:
        assert client.get("/memories").status_code == 200
        revoked = console(service, "keys", "revoke", created["key_id"], "--tenant", "default")
        assert revoked["revoked_at"]
        assert client.get("/memories").json()["code"] == "revoked_key"
    listed = console(service, "keys", "list", "--tenant", "default")
    assert {one["key_id"]: one["key_name"] for one in listed}[created["key_id"]] == "phone"
    assert all("key" not in one for one in listed)


@pytest.mark.slow
def test_tenants_made_at_the_console_have_a_key_of_their_own(service):
    created = console(service, "tenants", "create", "Acme", "--id", "acme")
    with service.client(created["key"]["key"]) as client:
        assert client.get("/memories").json()["items"] == []
    table = kemem("tenants", "list", "--data-dir", service.data_dir, cwd=service.data_dir.parent)
    assert "Acme" in table.stdout
    assert "default" in table.stdout
    again = kemem(
        "tenants", "create", "Acme", "--id", "acme", "--data-dir", service.data_dir,
        cwd=service.data_dir.parent,
    )  # fmt: skip
    assert again.returncode == 1
    assert "There is a tenant acme already." in again.stderr


@pytest.mark.slow
def test_a_disabled_tenant_is_enabled_at_the_console(service):
    with service.client() as client:
        assert console(service, "tenants", "disable", "default")["status"] == "disabled"
        assert client.get("/memories").json()["code"] == "tenant_disabled"
        assert console(service, "tenants", "enable", "default")["status"] == "enabled"
        assert client.get("/memories").status_code == 200


def demo(service, *arguments):
    done = kemem(
        "demo", "--url", service.address, "--data-dir", service.data_dir, *arguments,
        cwd=service.data_dir.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_demo_plays_to_its_end_and_cleans_up(service):
    said = demo(service, "--clean")
    for words in (
        "ADD", "NONE", "refused: duplicate", "refused: too_short", "refused: sensitive",
        "SUPERSEDE", "found again  no", "Deleted demo-", "她对花生过敏",
    ):  # fmt: skip
        assert words in said
    assert "4111" not in said
    with service.client() as client:
        users = [one["user_id"] for one in client.get("/users").json()["items"]]
    assert not [one for one in users if one.startswith("demo-")]


@pytest.mark.slow
def test_a_data_set_is_loaded_once_however_often_it_is_run(service, tmp_path):
    def turn(sitting, number, speaker, text, **more):
        return {"dia_id": f"D{sitting}:{number}", "speaker": speaker, "text": text, **more}

    talk = {
        "speaker_a": "Ana",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            turn(1, 1, "Ana", "I adopted a grey parrot in Lisbon."),
            turn(1, 2, "Bo", "That is wonderful, congratulations!"),
        ],
        "session_2_date_time": "9:00 am on 9 May, 2023",
        "session_2": [
            turn(2, 1, "Bo", "That is wonderful, congratulations!"),
            turn(2, 2, "Bo", "My card is 4111 1111 1111 1111."),
            turn(2, 3, "Ana", "Look!", blip_caption="a parrot on a balcony"),
        ],
    }
    question = {
        "question": "Which bird did Ana adopt in Lisbon?",
        "answer": "a parrot",
        "category": 4,
        "evidence": ["D:1:01; D7:7"],
    }
    unasked = question | {"category": 5}
    path = tmp_path / "talk.json"
    path.write_text(
        json.dumps([{"sample_id": "t1", "conversation": talk, "qa": [unasked, question]}])
    )
    first = demo(service, "--locomo", str(path))
    assert "Messages: 5 stored, 0 were there before" in first
    assert "Memories: 3 stored, 1 exact duplicates, 1 refused" in first
    assert "refused as sensitive: 1" in first
    assert "1 of 1 questions had evidence" in first
    again = demo(service, "--locomo", str(path))
    assert "Messages: 0 stored, 5 were there before" in again
    assert "Memories: 0 stored, 4 exact duplicates, 1 refused" in again
    with service.client() as client:
        items = client.get("/memories", params={"user_id": "locomo-t1"}).json()["items"]
    # Of two that say the same, either may have come first.
    stored = {one["metadata"]["dia_id"] for one in items}
    assert {"D1:2" if one == "D2:1" else one for one in stored} == {"D1:1", "D1:2", "D2:3"}
    assert len(items) == 3


@pytest.mark.slow
def test_the_service_recovers_when_postgresql_is_killed(service):
    with service.client() as client:
        os.kill(service.postgres()[0], signal.SIGKILL)
        eventually(lambda: client.get("/memories").status_code in {200, 503})
        eventually(service.is_ready)
        saved = client.post(
            "/memories", json={"messages": "It came back.", "user_id": "bo", "infer": False}
        )
    assert saved.status_code == 201
