"""What `kemem eval` and `kemem calibrate` refuse before they do anything."""

import json
from pathlib import Path

import pytest
from typer import Exit
from typer.testing import CliRunner

from app.cli.evaluation_options import (
    DatasetPart,
    answer_wishes,
    context_wishes,
    depth_of,
    depths,
    search_fields,
    settings_of,
)
from app.cli.failures import sentence_for
from app.cli.main import cli
from app.cli.options import service_meant
from app.errors import ConfigurationError
from app.evaluation.run import Plan
from app.settings import Settings


def test_depths_are_sorted_and_each_is_there_once():
    assert depths("10, 5,10 ,1,100") == [1, 5, 10, 100]


@pytest.mark.parametrize("text", ["", "0", "101", "5,", "-1", "ten", "1.5", "٣"])
def test_depths_that_are_none_are_refused(text, capsys):
    with pytest.raises(Exit) as ended:
        depths(text)
    assert ended.value.exit_code == 2
    assert "--k takes numbers" in capsys.readouterr().err


def test_fields_of_a_search_are_json():
    given = ["rerank=false", 'boosts={"speaker": 0}', 'scopes=["user"]', "threshold=0.2"]
    assert search_fields(given, "lexical") == {
        "mode": "lexical",
        "rerank": False,
        "boosts": {"speaker": 0},
        "scopes": ["user"],
        "threshold": 0.2,
    }
    # The service has a default of its own.
    assert search_fields([], None) == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("mode=hybrid", "is no JSON"),
        ("rerank", "is no JSON"),
        ("limit=5", "says that itself"),
        ('query="x"', "says that itself"),
        ('user_id="x"', "says that itself"),
    ],
)
def test_fields_that_are_none_are_refused(given, words, capsys):
    with pytest.raises(Exit):
        search_fields([given], None)
    assert words in capsys.readouterr().err


def test_a_field_may_be_given_once(capsys):
    with pytest.raises(Exit):
        search_fields(['mode="lexical"'], "hybrid")
    assert "twice" in capsys.readouterr().err


def settings(folder, **more):
    return Settings(_env_file=None, data_dir=folder, **more)


def test_the_service_is_this_machine_with_the_key_that_it_keeps(tmp_path):
    (tmp_path / "key").write_text("kem_a_b\n")
    found = service_meant(None, None, settings(tmp_path, port=8123))
    assert (found.base_url, found.key) == ("http://127.0.0.1:8123", "kem_a_b")


def test_options_go_before_what_is_kept(tmp_path):
    (tmp_path / "key").write_text("kem_a_b\n")
    found = service_meant("https://memory.example/v1", "kem_c_d", settings(tmp_path))
    assert (found.base_url, found.key) == ("https://memory.example", "kem_c_d")


@pytest.mark.parametrize(
    ("url", "key", "words"),
    [
        (None, None, "run `make run`"),
        ("http://127.0.0.1:1", None, "run `make run`"),
        ("https://memory.example", None, "give it with --key, or in KEMEM_API_KEY"),
        ("memory", None, "The address of the service is not valid"),
        ("ftp://memory.example", "kem_a_b", "--url"),
        ("http://127.0.0.1:1", "kem a", "option --key"),
    ],
)
def test_a_service_that_cannot_be_meant_is_said_so(url, key, words, tmp_path):
    with pytest.raises(ConfigurationError) as refused:
        service_meant(url, key, settings(tmp_path))
    assert words in str(refused.value)


def test_the_kept_key_goes_to_no_other_machine(tmp_path):
    (tmp_path / "key").write_text("kem_a_b\n")
    with pytest.raises(ConfigurationError) as refused:
        service_meant("https://memory.example", None, settings(tmp_path))
    assert "not sent to other machines" in str(refused.value)


def invoked(*arguments, env=None):
    """The exit code, and what was said."""
    done = CliRunner().invoke(cli, list(map(str, arguments)), env={"COLUMNS": "200"} | (env or {}))
    told = sentence_for(done.exception) if done.exception else None
    return (told[1], told[0]) if told else (done.exit_code, done.output)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("eval", ("recall@k", "--locomo", "KEMEM_URL", "KEMEM_API_KEY", "KEY=JSON", "--keep")),
        ("export", ("KEMEM_URL", "KEMEM_API_KEY")),
        ("import", ("KEMEM_URL", "KEMEM_API_KEY")),
        ("demo", ("KEMEM_URL", "KEMEM_API_KEY")),
        ("calibrate", ("neighbour floor", "--model", "MEMORY_EMBEDDING_MODEL", "--json")),
    ],
)
def test_the_commands_explain_themselves(command, words):
    code, said = invoked(command, "--help")
    assert code == 0
    assert [word for word in words if word not in said] == []


def test_a_data_set_is_given_one_way(tmp_path):
    file = tmp_path / "set.json"
    file.write_text("{}")
    assert invoked("eval")[0] == 2
    code, said = invoked("eval", file, "--locomo", file)
    assert (code, "one of them" in said) == (2, True)


def test_a_file_that_is_not_there_is_named(tmp_path):
    code, said = invoked("eval", tmp_path / "none.json")
    assert code == 2
    assert "does not exist" in said


@pytest.mark.parametrize("command", ["eval", "calibrate"])
def test_a_folder_for_the_result_must_be_there(command, tmp_path):
    code, said = invoked(command, "--json", tmp_path / "none" / "result.json")
    assert code == 2
    assert "There is no folder" in said


def test_the_environment_names_the_service(tmp_path):
    unit = {"id": "1", "text": "Hello there"}
    store = {"id": "ana", "units": [unit], "questions": [{"question": "Who?", "gold": ["1"]}]}
    (tmp_path / "set.json").write_text(json.dumps({"stores": [store]}))
    env = {"KEMEM_URL": "http://127.0.0.1:1", "KEMEM_API_KEY": "kem_a_b"}
    code, said = invoked("eval", tmp_path / "set.json", env=env)
    assert code == 1
    assert "No service answers at http://127.0.0.1:1" in said


@pytest.mark.parametrize("arguments", [("export",), ("import", "lines"), ("demo",)])
def test_the_environment_names_the_service_of_other_commands(arguments, tmp_path):
    (tmp_path / "lines").write_text("")
    given = [tmp_path / "lines" if one == "lines" else one for one in arguments]
    env = {"KEMEM_URL": "https://memory.example", "KEMEM_API_KEY": "", "DATABASE_URL": ""}
    code, said = invoked(*given, env=env)
    assert code == 2
    assert "There is no API key for https://memory.example" in said

    code, said = invoked(*given, env=env | {"KEMEM_API_KEY": "kem a"})
    assert code == 2
    assert "The API key from the option --key is not valid" in said


SAMPLED = DatasetPart(["a"], 1, 2, 3, 4)


def test_contexts_have_a_budget_and_nothing_is_said_of_none():
    asked = context_wishes([4000, 100, 4000], ["rerank=false"], wanted=True, extract=True)
    assert asked == {"budgets": (100, 4000), "context": {"rerank": False}, "extract": True}
    assert context_wishes(None, None, wanted=True, extract=False)["budgets"] == (2000,)
    assert context_wishes(None, None, wanted=False, extract=False) == {}


@pytest.mark.parametrize(
    "given", [([2000], None, False), (None, ["rerank=false"], False), (None, None, True)]
)
def test_what_is_of_contexts_alone_is_refused_without_them(given, capsys):
    budgets, fields, extract = given
    with pytest.raises(Exit) as ended:
        context_wishes(budgets, fields, wanted=False, extract=extract)
    assert ended.value.exit_code == 2
    assert "are of --context" in capsys.readouterr().err


def test_a_context_has_fields_that_the_evaluation_says_itself(capsys):
    with pytest.raises(Exit):
        context_wishes(None, ["max_memory_tokens=1"], wanted=True, extract=False)
    assert "--context-field max_memory_tokens: the evaluation" in capsys.readouterr().err


def test_a_result_says_how_it_was_asked():
    plan = Plan(run_id="e", limit=5, search={}, concurrency=4, keep=False, budgets=(100,))
    told = settings_of([5], plan, SAMPLED)
    assert (told["budgets"], told["sample"], told["seed"]) == ((100,), 3, 4)


@pytest.mark.parametrize(("budget", "code"), [(99, 2), (100, 1), (8000, 1), (8001, 2)])
def test_a_budget_is_one_that_the_service_takes(budget, code, tmp_path):
    unit = {"id": "1", "text": "Hello there"}
    store = {"id": "ana", "units": [unit], "questions": [{"question": "Who?", "gold": ["1"]}]}
    (tmp_path / "set.json").write_text(json.dumps({"stores": [store]}))
    env = {"KEMEM_URL": "http://127.0.0.1:1", "KEMEM_API_KEY": "kem_a_b"}
    given = ("eval", tmp_path / "set.json", "--context", "--budget", budget)
    assert invoked(*given, env=env)[0] == code


def test_answers_are_wanted_of_a_model_and_graded_by_it_or_another():
    given = {"variants": " context,nothing,context", "window": 1000, "cache": Path("kept")}
    wishes = answer_wishes("openai/m", None, **given, yes=True, dry_run=False)
    assert (wishes.model, wishes.judge) == ("openai/m", "openai/m")
    assert wishes.variants == ("context", "nothing")
    assert answer_wishes("openai/m", "openai/n", **given, yes=True, dry_run=True).judge.endswith(
        "n"
    )
    assert answer_wishes(None, None, **given, yes=False, dry_run=False) is None
    # The ten best messages are shown, however few are measured.
    assert [depth_of([5], one) for one in (None, wishes)] == [5, 10]
    assert depth_of([5, 50], wishes) == 50
    plan = Plan(run_id="e", limit=5, search={}, concurrency=4, keep=False)
    assert settings_of([5], plan, SAMPLED, wishes)["answers"]["judge"] == "openai/m"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--judge", "openai/m"), "are of --answers"),
        (("--yes",), "are of --answers"),
        (("--dry-run",), "are of --answers"),
        (("--answers", "openai/m", "--variants", "context,all"), "--variants takes some of"),
        (("--answers", "openai/m", "--variants", ","), "--variants takes some of"),
        (("--answers", "openai/m", "--variants", "nothing", "--extract"), "are of --context"),
    ],
)
def test_wishes_that_do_not_fit_are_refused(arguments, words, tmp_path):
    (tmp_path / "set.json").write_text("{}")
    code, said = invoked("eval", tmp_path / "set.json", *arguments)
    assert code == 2
    assert words in said


@pytest.mark.parametrize("model", ["rules", "none", "openai/", "openai/m"])
def test_a_model_that_is_none_here_is_said_so(model, tmp_path):
    unit = {"id": "1", "text": "Hello there"}
    question = {"question": "Who?", "gold": ["1"], "answer": "Ben"}
    store = {"id": "ana", "units": [unit], "questions": [question]}
    (tmp_path / "set.json").write_text(json.dumps({"stores": [store]}))
    env = {
        "KEMEM_URL": "http://127.0.0.1:1", "KEMEM_API_KEY": "kem_a_b", "OPENAI_API_KEY": "",
        "OPENAI_BASE_URL": "",
    }  # fmt: skip
    code, said = invoked("eval", tmp_path / "set.json", "--answers", model, env=env)
    assert code == 2
    assert f"--answers {model}: write openai/<model>" in said
