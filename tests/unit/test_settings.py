"""Settings: what is read, what is refused, and that `.env.example` tells it all."""

import base64
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import pytest

from app.errors import ConfigurationError
from app.platform.values.fields import ID_PATTERN
from app.settings import REMOVED, Settings, UserId, load_settings, tiktoken_folder, variable

EXAMPLE = Path(__file__).parents[2] / ".env.example"
LINE = re.compile(r"#?([A-Z][A-Z0-9_]*)=(.*)")


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """These variables and no other setting, as a shell would start the service."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(("MEMORY_", "OPENAI_", "DATABASE_URL")):
            del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def load(**variables: str) -> Settings:
    with environment(**variables):
        return load_settings()


def refusal(**variables: str) -> str:
    with environment(**variables), pytest.raises(ConfigurationError) as raised:
        load_settings()
    return str(raised.value)


class TestExample:
    def listed(self) -> dict[str, str]:
        found = [LINE.fullmatch(line) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()]
        names = [one[1] for one in found if one]
        assert len(names) == len(set(names)), "a setting is listed twice"
        return {one[1]: one[2] for one in found if one}

    def test_env_example_lists_every_setting_once_and_no_other(self) -> None:
        assert self.listed().keys() == {variable(name) for name in Settings.model_fields}

    def test_env_example_shows_the_defaults(self) -> None:
        listed = self.listed()
        for name, field in Settings.model_fields.items():
            shown = listed[variable(name)]
            if field.default is None or not shown:
                continue
            with environment(**{variable(name): shown}):
                read = getattr(load_settings(embedding_model="wordllama/l2_supercat"), name)
            assert read == field.default, name

    def test_every_setting_is_explained(self) -> None:
        lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if LINE.fullmatch(line):
                block = lines[max(0, number - 12) : number]
                assert any(one.startswith("# ") for one in block[-6:]), line

    def test_there_are_fewer_than_80(self) -> None:
        assert 20 < len(Settings.model_fields) < 80


class TestLoading:
    def test_nothing_is_needed(self) -> None:
        settings = load()

        assert settings.embedded
        assert settings.port == 8000

    def test_the_well_known_names_have_no_prefix(self) -> None:
        settings = load(
            DATABASE_URL="postgresql://db/kemem",
            OPENAI_API_KEY="sk-1",
            OPENAI_BASE_URL="http://localhost:1/v1",
        )

        assert settings.database_url is not None
        assert settings.database_url.get_secret_value() == "postgresql://db/kemem"
        assert settings.openai_base_url == "http://localhost:1/v1"

    def test_an_empty_variable_is_none(self) -> None:
        assert load(DATABASE_URL="", MEMORY_PORT="").port == 8000

    def test_the_command_line_has_the_last_word(self) -> None:
        with environment(MEMORY_PORT="9000"):
            assert load_settings(port=9001).port == 9001

    def test_the_folder_of_tiktoken_is_the_one_it_reads_itself(self, tmp_path: Path) -> None:
        with environment(TIKTOKEN_CACHE_DIR=str(tmp_path)):
            assert tiktoken_folder() == tmp_path
        with environment(TIKTOKEN_CACHE_DIR=""):
            assert tiktoken_folder() is None

    def test_the_default_user_is_named_as_every_user(self) -> None:
        assert str(get_args(UserId)[1].pattern) == ID_PATTERN
        assert "MEMORY_DEFAULT_USER_ID" in refusal(MEMORY_DEFAULT_USER_ID="a b")

    def test_settings_do_not_change(self) -> None:
        with pytest.raises(ValueError, match="frozen"):
            load().port = 1


class TestRefusals:
    def test_an_unknown_name_is_said(self) -> None:
        assert "MEMORY_MIN_CONFIDENC" in refusal(MEMORY_MIN_CONFIDENC="0.7")
        assert ".env.example" in refusal(MEMORY_X="1")

    @pytest.mark.parametrize("name", sorted(REMOVED))
    def test_a_removed_one_is_said_to_be_gone(self, name: str) -> None:
        sentence = refusal(**{name: "1"})

        assert sentence.startswith(f"{name} is no longer a setting")
        assert "Unknown" not in sentence
        both = refusal(**{name: "1", "MEMORY_X": "1"})
        assert name in both
        assert "Unknown setting MEMORY_X:" in both

    def test_a_name_of_others_is_none_of_ours(self) -> None:
        assert load(MEMORYLESS="1", PORT="1").port == 8000

    @pytest.mark.parametrize(
        ("variables", "names"),
        [
            ({"MEMORY_RANK_W_SCOPE": "0.3"}, ["MEMORY_RANK_W_SCOPE", "sum to 1", "1.1"]),
            (
                {"MEMORY_MIN_LENGTH": "50", "MEMORY_MAX_LENGTH": "40"},
                ["MEMORY_MIN_LENGTH", "MEMORY_MAX_LENGTH"],
            ),
            (
                {"MEMORY_EMBEDDING_MODEL": "openai/text-embedding-3-small"},
                ["MEMORY_EMBEDDING_MODEL", "OPENAI_API_KEY"],
            ),
            ({"MEMORY_MIGRATION_URL": "postgresql://o@db/k"}, ["DATABASE_URL"]),
            (
                {"MEMORY_RERANK_API_KEY": "hunter2"},
                ["MEMORY_RERANK_API_KEY", "MEMORY_RERANK_MODEL"],
            ),
        ],
    )
    def test_two_that_contradict_each_other(
        self, variables: dict[str, str], names: list[str]
    ) -> None:
        sentence = refusal(**variables)

        assert all(name in sentence for name in names), sentence
        assert sentence.endswith(".")

    @pytest.mark.parametrize(
        ("workers", "background", "most"),
        [  # Each process: twice the pool and 3; one more listens.
            ("0", "true", 58),  # 120 connections.
            ("1", "false", 58),
            ("1", "true", 28),  # 119.
            ("6", "true", 7),  # 120.
            ("7", "false", 7),
            ("7", "true", 5),  # 105; with 6 the one that listens is too many.
        ],
    )
    def test_the_embedded_database_has_connections_for_all_processes(
        self, workers: str, background: str, most: int
    ) -> None:
        variables = {"MEMORY_WORKERS": workers, "MEMORY_WORKER_ENABLED": background}
        for size in (most - 1, most):
            kept = load(**variables, MEMORY_DATABASE_POOL_SIZE=str(size))
            assert kept.database_pool_size == size

        above = {**variables, "MEMORY_DATABASE_POOL_SIZE": str(most + 1)}
        sentence = refusal(**above)

        assert "120 connections" in sentence
        assert "MEMORY_WORKERS" in sentence
        assert "MEMORY_DATABASE_POOL_SIZE" in sentence
        elsewhere = load(**above, DATABASE_URL="postgresql://o@db/k")
        assert elsewhere.database_pool_size == most + 1

    @pytest.mark.parametrize(
        ("variables", "several"),
        [
            ({}, True),
            ({"MEMORY_WORKER_ENABLED": "false"}, False),
            ({"MEMORY_WORKERS": "0"}, False),
            ({"MEMORY_WORKERS": "2", "MEMORY_WORKER_ENABLED": "false"}, True),
        ],
    )
    def test_background_work_has_a_process_of_its_own(
        self, variables: dict[str, str], several: bool
    ) -> None:
        assert load(**variables).several_processes is several

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("MEMORY_PORT", "70000"),
            ("MEMORY_PORT", "http"),
            ("MEMORY_MIN_CONFIDENCE", "1.5"),
            ("MEMORY_MIN_CONFIDENCE", "nan"),
            ("MEMORY_DUPLICATE_THRESHOLD", "-1"),
            ("MEMORY_RANK_W_SIMILARITY", "inf"),
            ("MEMORY_DATABASE_POOL_SIZE", "0"),
            ("MEMORY_LOG_LEVEL", "loud"),
            ("MEMORY_ENABLED", "perhaps"),
            ("MEMORY_MODEL_TIMEOUT_SECONDS", "nan"),
            ("MEMORY_MODEL_TIMEOUT_SECONDS", "0"),
            ("MEMORY_REQUEST_MAX_BYTES", "1"),
            ("MEMORY_WORKER_ENABLED", "perhaps"),
            ("MEMORY_WEBHOOK_PRIVATE_TARGETS", "internal"),
            ("MEMORY_LEASE_SECONDS", "nan"),
            ("MEMORY_PRESSURE_WARN", "nan"),
            ("MEMORY_EVICT_FRACTION", "0"),
            ("MEMORY_EVICTION", "oldest"),
        ],
    )
    def test_a_value_out_of_bounds_is_named(self, name: str, value: str) -> None:
        assert refusal(**{name: value}).startswith(f"{name}: ")

    @pytest.mark.parametrize(
        ("name", "least", "most"),
        [
            ("DEBOUNCE_SECONDS", 1, 300),
            ("SIGNAL_WINDOW", 1, 50),
            ("MAX_EXTRACTIONS", 1, 1000),
            ("MAX_FACTS", 0, 500),
            ("UPLOAD_MAX_BYTES", 1024, 1024**3),
            ("MESSAGE_RETENTION_DAYS", 0, 3650),
            ("DAILY_CALLS", 0, 10**9),
            ("DAILY_TOKENS", 0, 10**12),
            ("WORKER_CONCURRENCY", 1, 64),
            ("LEASE_SECONDS", 5, 3600),
            ("JOB_TIMEOUT_SECONDS", 5, 7200),
            ("WINDOW_TOKENS", 100, 10_000_000),
            ("SUMMARY_WORD_LIMIT", 10, 2000),
            ("MAX_INJECTION_TOKENS", 100, 8000),
            ("CHECKPOINT_TTL_DAYS", 0, 3650),
        ],
    )
    def test_what_bounds_the_worker_has_bounds_itself(
        self, name: str, least: int, most: int
    ) -> None:
        for value in (least, most):
            settings = load(**{f"MEMORY_{name}": str(value)})
            assert getattr(settings, name.lower()) == value
        for value in (least - 1, most + 1):
            assert refusal(**{f"MEMORY_{name}": str(value)}).startswith(f"MEMORY_{name}: ")

    @pytest.mark.parametrize(
        "address",
        [
            "localhost:8601", "api.example.com/v1", "//api.example.com/v1", "ftp://localhost/v1",
            "http:/localhost/v1", "http://:8601/v1", "http://localhost:86010/v1",
            "http://localhost:port/v1", "http://[::1/v1", " http://localhost/v1",
            "http://local host/v1", "'http://localhost/v1'",
        ],
    )  # fmt: skip
    def test_an_endpoint_that_is_no_whole_address_is_said(self, address: str) -> None:
        sentence = refusal(OPENAI_BASE_URL=address)

        assert sentence.startswith("OPENAI_BASE_URL: write a whole address, such as http://")
        assert address not in sentence

    @pytest.mark.parametrize(
        "address",
        [
            "http://localhost:8601", "https://api.example.com/v1/", "HTTP://[::1]:8601/v1",
            "https://模型.example/v1", "https://api.example.com/openai?api-version=2024-10-21",
        ],
    )  # fmt: skip
    def test_a_whole_address_is_taken_as_it_is(self, address: str) -> None:
        assert load(OPENAI_BASE_URL=address).openai_base_url == address

    def test_every_fault_is_said_at_once(self) -> None:
        sentence = refusal(MEMORY_PORT="x", MEMORY_LOG_LEVEL="loud")

        assert "MEMORY_PORT" in sentence
        assert "MEMORY_LOG_LEVEL" in sentence


SECRETS = {
    "DATABASE_URL": "postgresql://kemem:hunter2@db/kemem",
    "OPENAI_API_KEY": "sk-hunter2",
    "MEMORY_MIGRATION_URL": "postgresql://owner:hunter2@db/kemem",
    "MEMORY_METRICS_TOKEN": "hunter2",
    "MEMORY_RERANK_MODEL": "cohere/rerank-v3.5",
    "MEMORY_RERANK_API_KEY": "hunter2",
}


class TestSecretKeys:
    def test_several_are_kept_in_their_order(self) -> None:
        first, second = (base64.b64encode(bytes([number]) * 32).decode() for number in (250, 1))

        assert load().secret_keys == []
        assert load(MEMORY_SECRET_KEY=f"{first}, {second}").secret_keys == [first, second]
        url_safe = first.replace("/", "_").replace("+", "-")
        assert load(MEMORY_SECRET_KEY=url_safe).secret_keys == [url_safe]
        assert "MEMORY_SECRET_KEY: write what" in refusal(MEMORY_SECRET_KEY=f"{first},")

    @pytest.mark.parametrize("bytes_", [31, 33])
    def test_what_has_not_32_bytes_is_refused_and_not_repeated(self, bytes_: int) -> None:
        key = base64.b64encode(b"k" * bytes_).decode()

        for value in (key, f"{base64.b64encode(b'k' * 32).decode()},{key}", "hunter2!"):
            sentence = refusal(MEMORY_SECRET_KEY=value)
            assert "MEMORY_SECRET_KEY: write what `openssl rand -base64 32` prints" in sentence
            assert value not in sentence


class TestSecrets:
    def test_they_are_kept_as_secrets(self) -> None:
        settings = load(**SECRETS)

        assert "hunter2" not in repr(settings)
        assert "hunter2" not in str(settings.model_dump())

    def test_no_sentence_repeats_one(self) -> None:
        for fault in (
            {"MEMORY_PORT": "x"}, {"MEMORY_UNKNOWN": "hunter2"}, {"MEMORY_MIN_LENGTH": "3000"},
            {"MEMORY_RANK_W_SCOPE": "1"}, {"MEMORY_WORKERS": "hunter2"},
        ):  # fmt: skip
            assert "hunter2" not in refusal(**SECRETS, **fault)


class TestMem0:
    def test_its_clients_are_served_where_only_this_machine_reaches_the_service(self) -> None:
        external = "postgresql://kemem@db.example/kemem"

        assert load().serves_mem0
        assert load(MEMORY_HOST="localhost").serves_mem0
        assert load(MEMORY_HOST="::1").serves_mem0
        assert not load(MEMORY_HOST="0.0.0.0").serves_mem0
        assert not load(MEMORY_HOST="memory.example").serves_mem0
        assert not load(DATABASE_URL=external).serves_mem0

    def test_the_setting_decides_where_it_is_given(self) -> None:
        assert load(MEMORY_HOST="0.0.0.0", MEMORY_MEM0_API="true").serves_mem0
        assert not load(MEMORY_MEM0_API="false").serves_mem0
