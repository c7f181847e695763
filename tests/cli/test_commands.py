"""What commands say before they do anything: help, and refusals in one sentence."""

import json
import os
import socket
from contextlib import chdir

import pytest
from cli_support import kemem
from typer.testing import CliRunner

from app.cli.failures import sentence_for
from app.cli.main import COMMANDS, cli, load_command
from app.platform.version import VERSION

CALLS = (
    (), ("serve",), ("migrate",), ("tenants",), ("tenants", "create"), ("tenants", "list"),
    ("tenants", "enable"), ("tenants", "disable"),
    ("keys",), ("keys", "create"), ("keys", "first"), ("keys", "list"), ("keys", "revoke"),
    ("worker",), ("purge",),
    ("reembed",), ("reread",), ("demo",), ("eval",), ("calibrate",),
    ("import-conversations",), ("mcp",), ("openapi",), ("version",),
)  # fmt: skip


@pytest.mark.parametrize("command", CALLS, ids=" ".join)
def test_every_command_explains_itself(command):
    shown = CliRunner().invoke(cli, [*command, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert "Usage" in shown.output
    assert "--install-completion" not in shown.output


def test_every_option_has_a_help_text():
    def options(command):
        yield from ((command.name, one) for one in command.params)
        for child in getattr(command, "commands", {}).values():
            yield from options(child)

    silent = [
        (name, one.name)
        for command in COMMANDS
        for name, one in options(load_command(command))
        if not getattr(one, "help", None)
    ]
    assert silent == []


@pytest.mark.parametrize("name", COMMANDS)
def test_list_of_commands_says_what_each_says_of_itself(name):
    help_text = load_command(name).help

    assert " ".join(help_text.split("\n\n")[0].split()) == COMMANDS[name].summary


def test_unknown_command_is_refused():
    shown = CliRunner().invoke(cli, ["unheard-of"])

    assert shown.exit_code == 2
    assert "unheard-of" in shown.output


@pytest.mark.parametrize("command", ["--version", "version"])
def test_command_prints_its_version(command):
    shown = CliRunner().invoke(cli, [command])

    assert (shown.exit_code, shown.output) == (0, f"{VERSION}\n")


def test_the_console_command_prints_one_json_document():
    document = json.loads(CliRunner().invoke(cli, ["openapi"]).stdout)
    assert "/v1/memories/search" in document["paths"]


def told(*arguments, env):
    """The sentence and the exit code of a command that ends before it opens anything."""
    return sentence_for(CliRunner().invoke(cli, arguments, env=env).exception)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"MEMORY_PROT": "8000"}, "Unknown setting MEMORY_PROT"),
        ({"MEMORY_PORT": "99999"}, "MEMORY_PORT"),
        ({"MEMORY_WORKERS": "64"}, "MEMORY_WORKERS want"),
        ({"MEMORY_EMBEDDING_MODEL": "openai/x"}, "needs OPENAI_API_KEY"),
        (
            {"DATABASE_URL": "postgresql://kemem:secret@127.0.0.1:1/kemem", "MEMORY_PORT": "0"},
            "cannot be reached",
        ),
        ({"DATABASE_URL": "mysql://secret@127.0.0.1/kemem"}, "DATABASE_URL"),
        ({"DATABASE_URL": "postgresql://kemem:secret#1@127.0.0.1/kemem"}, "# as %23"),
        ({"MEMORY_MIGRATION_URL": "postgresql://kemem:secret/1@127.0.0.1/kemem"}, "/ as %2F"),
        ({"MEMORY_METRICS_TOKEN": "secret", "MEMORY_PORT": "-1"}, "MEMORY_PORT"),
    ],
)
def test_settings_that_cannot_work_are_named(env, words):
    sentence, code = told("serve", env=env)
    assert code == 2
    assert words in sentence
    assert "secret" not in sentence
    # It named a folder that has gone, and whatever was started later failed.
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def test_a_data_folder_and_a_database_are_one_too_many():
    env = {"DATABASE_URL": "postgresql://kemem@127.0.0.1:1/kemem"}
    sentence, code = told("purge", "--data-dir", "d", env=env)
    assert code == 2
    assert "leave one of them out" in sentence


def test_values_of_options_are_checked_and_not_repeated():
    sentence, code = told("tenants", "create", "Acme", "--id", "sec ret", env={})
    assert code == 1
    assert "tenant_id" in sentence
    assert "sec ret" not in sentence


def test_command_that_cannot_run_prints_its_sentence_alone(folder):
    done = kemem("serve", cwd=folder, env={"MEMORY_PROT": "8000", "MEMORY_PORT": "0"})

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kemem: ")
    assert done.stderr.count("\n") == 1
    assert "MEMORY_PROT" in done.stderr


def test_a_taken_port_is_named(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        sentence, code = told("serve", "--port", port, "--data-dir", str(folder / "data"), env={})
    assert code == 2
    assert f"Port {port}" in sentence
    assert "--port" in sentence


def test_a_demo_without_a_service_says_what_to_run():
    done = CliRunner().invoke(cli, ["demo", "--key", "kem_a_b", "--url", "http://127.0.0.1:1"])
    assert done.exit_code == 1
    assert "make run" in done.stderr


def test_looking_something_up_makes_no_database(folder):
    missing = folder / "nothing here"

    sentence, code = told("tenants", "list", "--data-dir", str(missing), env={})

    assert code == 2
    assert "kemem serve" in sentence
    assert not missing.exists()


def test_an_unset_variable_is_no_data_folder(folder):
    with chdir(folder):
        sentence, code = told("serve", "--data-dir", "", env={})

    assert code == 2
    assert "--data-dir" in sentence
    assert list(folder.iterdir()) == []


def test_a_file_is_no_data_folder(folder):
    file = folder / "file"
    file.touch()

    sentence, code = told("serve", "--data-dir", str(file), env={})

    assert code == 2
    assert f"The data folder {file} cannot be used: it is no folder." in sentence
    assert "--data-dir" in sentence


def test_a_settings_file_that_is_no_text_is_said_so(folder):
    (folder / ".env").write_bytes(b"MEMORY_PORT=\xff\n")

    with chdir(folder):
        sentence, code = told("serve", "--port", "0", "--data-dir", str(folder / "data"), env={})

    assert code == 2
    assert "UTF-8" in sentence
