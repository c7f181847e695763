"""Every setting the service reads, in one place.

`DATABASE_URL`, `OPENAI_API_KEY` and `OPENAI_BASE_URL` are the names everyone knows; all
else begins with `MEMORY_`. `.env.example` lists each once, and a test compares the two. An
unknown `MEMORY_*` variable, or two settings that contradict each other, stops the start
with a sentence that says how to mend it.
"""

import base64
import os
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import SplitResult, urlsplit

from annotated_types import Ge, Gt, Le
from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import ConfigurationError

Share = Annotated[float, Ge(0.0), Le(1.0)]

UserId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@|+=~-]{0,63}$")]
"""An id of a user, in ASCII alone."""


def _whole_address(address: str) -> str:
    """Raises ValueError."""
    try:
        parts = urlsplit(address)
        whole = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        whole = False
    # The parser removes what it cannot use; the client sends it.
    if not whole or any(not char.isprintable() or char.isspace() for char in address):
        msg = (
            "write a whole address, such as http://localhost:11434/v1 or https://api.openai.com/v1"
        )
        raise ValueError(msg)
    return address


Address = Annotated[str, AfterValidator(_whole_address)]


def _keys_of_32_bytes(keys: SecretStr) -> SecretStr:
    """Raises ValueError."""
    try:
        lengths = {len(base64.b64decode(key, b"-_", validate=True)) for key in _parts(keys)}
    except ValueError:
        lengths = set()
    if lengths != {KEY_BYTES}:
        msg = "write what `openssl rand -base64 32` prints, or several of them with commas between"
        raise ValueError(msg)
    return keys


def _of_postgres(url: SecretStr) -> SecretStr:
    """Raises ValueError."""
    try:
        parts = urlsplit(url.get_secret_value())
        # Of several servers the driver reads the ports.
        known = parts.scheme in {"postgresql", "postgres"} and ("," in parts.netloc or _port(parts))
    except ValueError:
        known = False
    if not known:
        msg = (
            "write it as postgresql://user:password@host:port/database, with this scheme; what a "
            "URL uses itself is encoded in the password, such as # as %23 and / as %2F"
        )
        raise ValueError(msg)
    return url


def _port(parts: SplitResult) -> bool:
    """Whether the port can be one. Raises ValueError where it is no number."""
    return parts.port is None or parts.port > 0


def _parts(keys: SecretStr) -> list[str]:
    return [key.strip() for key in keys.get_secret_value().split(",")]


KEY_BYTES: Final = 32

SecretKeys = Annotated[SecretStr, AfterValidator(_keys_of_32_bytes)]

DatabaseUrl = Annotated[SecretStr, AfterValidator(_of_postgres)]

REMOVED: Final = frozenset(
    {
        "MEMORY_EXACT_ROWS",
        "MEMORY_SEARCH_BOOSTS",
        "MEMORY_STATEMENT_TIMEOUT_SECONDS",
        "MEMORY_USAGE_FLUSH_SECONDS",
    }
)
"""Settings of an earlier release, whose values are built in."""


EMBEDDED_CONNECTIONS: Final = 120
"""What the embedded PostgreSQL keeps for the service; commands have some more."""

DISPATCH_POOL_SIZE: Final = 3
"""Of each process, for looking keys and jobs up."""

_LISTENERS: Final = 1


class Settings(BaseSettings):
    """The configuration of one process; frozen, read once, passed on."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_prefix="MEMORY_",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        env_ignore_empty=True,
    )

    # --- where it runs
    database_url: DatabaseUrl | None = Field(default=None, validation_alias="DATABASE_URL")
    migration_url: DatabaseUrl | None = None
    allow_owner_login: bool = False
    data_dir: Path | None = None
    host: str = "127.0.0.1"
    port: Annotated[int, Ge(0), Le(65535)] = 8000
    mem0_api: bool | None = None
    workers: Annotated[int, Ge(0), Le(64)] = 1
    max_connections: Annotated[int, Ge(10), Le(100_000)] = 800
    request_seconds: Annotated[int, Ge(1), Le(3600)] = 300
    max_waiting: Annotated[int, Ge(1), Le(100_000)] = 300
    database_pool_size: Annotated[int, Ge(1), Le(100)] = 6
    read_in_transactions: bool = False
    disk_reserve_bytes: Annotated[int, Ge(0), Le(1024**4)] = 256 * 1024 * 1024
    shutdown_seconds: Annotated[int, Ge(1), Le(300)] = 30
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    metrics_token: SecretStr | None = None
    tracing: bool = False
    secret_key: SecretKeys | None = None

    # --- models
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: Address | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    embedding_model: str = "wordllama/l2_supercat"
    embedding_dim: Annotated[int, Ge(1), Le(16_000)] | None = None
    model_timeout_seconds: Annotated[float, Gt(0), Le(600)] = 30.0
    model_retries: Annotated[int, Ge(0), Le(10)] = 2

    extraction_model: str = "rules"
    summary_model: str = "extractive"
    model_prices: str = ""

    rerank_model: str | None = None
    rerank_api_key: SecretStr | None = None

    # --- what is accepted
    enabled: bool = True
    auto_create: bool = True
    default_user_id: UserId | None = None
    min_confidence: Share = 0.7
    duplicate_threshold: Share | None = None
    min_length: Annotated[int, Ge(1), Le(1000)] = 5
    secrets_action: Literal["reject", "redact", "allow"] = "reject"
    identifiers_action: Literal["reject", "redact", "allow"] = "reject"
    max_length: Annotated[int, Ge(1), Le(100_000)] = 2000
    upload_max_bytes: Annotated[int, Ge(1024), Le(1024**3)] = 32 * 1024 * 1024
    processors: str = ""
    request_max_bytes: Annotated[int, Ge(1024), Le(64 * 1024 * 1024)] = 2 * 1024 * 1024

    reads_per_minute: Annotated[int, Ge(0), Le(100_000_000)] = 0
    writes_per_minute: Annotated[int, Ge(0), Le(100_000_000)] = 0
    model_requests_per_minute: Annotated[int, Ge(0), Le(100_000_000)] = 0

    # --- the write pipeline
    debounce_seconds: Annotated[int, Ge(1), Le(300)] = 30
    signal_window: Annotated[int, Ge(1), Le(50)] = 6
    stop_words: str = ""
    stripped_tags: str = "uploaded_files,memory,memories,system-reminder"
    max_extractions: Annotated[int, Ge(1), Le(1000)] = 3
    profile_interval_seconds: Annotated[int, Ge(0), Le(86_400)] = 600
    max_facts: Annotated[int, Ge(0), Le(500)] = 100
    daily_calls: Annotated[int, Ge(0), Le(1_000_000_000)] = 0
    daily_tokens: Annotated[int, Ge(0), Le(1_000_000_000_000)] = 0
    worker_enabled: bool = True
    worker_concurrency: Annotated[int, Ge(1), Le(64)] = 4
    lease_seconds: Annotated[int, Ge(5), Le(3600)] = 60
    job_timeout_seconds: Annotated[int, Ge(5), Le(7200)] = 300
    webhook_private_targets: bool = False

    # --- ranking
    rank_w_similarity: Share = 0.5
    rank_w_confidence: Share = 0.3
    rank_w_scope: Share = 0.2
    scope_weights: str = ""

    # --- the window and the context
    window_tokens: Annotated[int, Ge(100), Le(10_000_000)] = 4000
    pressure_warn: Annotated[float, Gt(0), Le(1)] = 0.7
    pressure_flush: Annotated[float, Gt(0), Le(1)] = 1.0
    evict_fraction: Annotated[float, Gt(0), Le(1)] = 0.5
    summary_word_limit: Annotated[int, Ge(10), Le(2000)] = 100
    injection_enabled: bool = True
    max_injection_tokens: Annotated[int, Ge(100), Le(8000)] = 2000

    # --- keeping and letting go
    purge_days: Annotated[int, Ge(0), Le(3650)] = 30
    message_retention_days: Annotated[int, Ge(0), Le(3650)] = 0
    eviction: Literal["confidence", "hybrid"] = "confidence"
    checkpoint_ttl_days: Annotated[int, Ge(0), Le(3650)] = 30

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Refuse settings that are valid alone and contradict each other."""
        total = self.rank_w_similarity + self.rank_w_confidence + self.rank_w_scope
        if abs(total - 1.0) > 1e-6:
            msg = (
                "MEMORY_RANK_W_SIMILARITY, MEMORY_RANK_W_CONFIDENCE and MEMORY_RANK_W_SCOPE "
                f"must sum to 1; they sum to {total:g}."
            )
            raise ValueError(msg)
        if self.min_length > self.max_length:
            msg = "MEMORY_MIN_LENGTH must not be above MEMORY_MAX_LENGTH."
            raise ValueError(msg)
        if self.pressure_warn > self.pressure_flush:
            msg = "MEMORY_PRESSURE_WARN must not be above MEMORY_PRESSURE_FLUSH."
            raise ValueError(msg)
        if self.embedding_model.startswith("openai/") and not (
            self.openai_api_key or self.openai_base_url
        ):
            msg = (
                f"MEMORY_EMBEDDING_MODEL={self.embedding_model} needs OPENAI_API_KEY, or "
                "OPENAI_BASE_URL for a local endpoint that wants none. Leave "
                "MEMORY_EMBEDDING_MODEL out to embed locally without a key."
            )
            raise ValueError(msg)
        if self.rerank_api_key is not None and self.rerank_model is None:
            msg = (
                "MEMORY_RERANK_API_KEY needs MEMORY_RERANK_MODEL beside it: without a model "
                "nothing is reranked."
            )
            raise ValueError(msg)
        if self.database_url is None and self.migration_url is not None:
            msg = "MEMORY_MIGRATION_URL needs DATABASE_URL beside it."
            raise ValueError(msg)
        wanted = self._most_database_connections()
        if self.database_url is None and wanted > EMBEDDED_CONNECTIONS:
            msg = (
                f"The embedded PostgreSQL has {EMBEDDED_CONNECTIONS} connections, and "
                f"MEMORY_DATABASE_POOL_SIZE and MEMORY_WORKERS want {wanted}: lower one of them."
            )
            raise ValueError(msg)
        return self

    def _most_database_connections(self) -> int:
        # One pool for units of work, and one of the same size for hot reads.
        each = 2 * self.database_pool_size + DISPATCH_POOL_SIZE
        processes = max(self.workers, 1) + (self.workers > 0 and self.worker_enabled)
        return processes * each + _LISTENERS

    @property
    def several_processes(self) -> bool:
        """Whether `kemem serve` is more than one process of its own."""
        return self.workers > 1 or (self.workers == 1 and self.worker_enabled)

    @property
    def embedded(self) -> bool:
        """Whether the service runs its own PostgreSQL."""
        return self.database_url is None

    @property
    def serves_mem0(self) -> bool:
        """Whether mem0's clients are answered: by default where only this machine can reach the
        service, which then runs its own PostgreSQL.
        """
        if self.mem0_api is not None:
            return self.mem0_api
        return self.embedded and (self.host == "localhost" or _is_loopback(self.host))

    @property
    def secret_keys(self) -> list[str]:
        """What encrypts secrets, and behind it what may still decrypt them."""
        return [] if self.secret_key is None else _parts(self.secret_key)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def metrics_folder() -> Path | None:
    """Where the processes of one service share their metrics; set by `kemem serve` for them."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    return Path(folder) if folder else None


def tiktoken_folder() -> Path | None:
    """Where tiktoken looks for its files; it reads the same variable itself."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR")
    return Path(folder) if folder else None


def variable(name: str) -> str:
    """The environment variable that sets the field `name`."""
    alias = Settings.model_fields[name].validation_alias
    return alias if isinstance(alias, str) else f"MEMORY_{name.upper()}"


def load_settings(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Read the environment and `.env`, with `overrides` (field names) on top.

    Raises:
        ConfigurationError: a variable is unknown, out of bounds, or contradicts another;
            the message names it and what is allowed, never its value when it is a secret.

    """
    environ = os.environ if environ is None else environ
    known = {variable(name) for name in Settings.model_fields}
    unknown = sorted(
        key for key in environ if key.upper().startswith("MEMORY_") and key.upper() not in known
    )
    unknown += _unknown_in_file(known)
    if unknown:
        raise ConfigurationError(_strange(unknown))
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise ConfigurationError(_explain(error)) from None


def _strange(names: list[str]) -> str:
    gone = [name for name in names if name.upper() in REMOVED]
    sentences = [
        f"{name} is no longer a setting, its value is built in: remove it." for name in gone
    ]
    if unknown := [name for name in names if name not in gone]:
        sentences.append(
            f"Unknown setting {', '.join(unknown)}: correct the name or remove it; "
            ".env.example lists every setting."
        )
    return " ".join(sentences)


def _unknown_in_file(known: set[str]) -> list[str]:
    """Raises ConfigurationError."""
    path = Path(".env")
    if not path.is_file():
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError(".env is not UTF-8 text: save it as UTF-8.") from None
    names = (
        line.split("=", 1)[0].removeprefix("export ").strip().upper()
        for line in text.splitlines()
        if "=" in line and not line.lstrip().startswith("#")
    )
    return sorted(name for name in names if name.startswith("MEMORY_") and name not in known)


def _explain(error: ValidationError) -> str:
    """One sentence per fault. Pydantic's own text would print the value, perhaps a secret."""
    sentences = []
    for fault in error.errors(include_input=False, include_url=False):
        message = fault["msg"].removeprefix("Value error, ")
        if not fault["loc"]:
            sentences.append(message)
            continue
        name = str(fault["loc"][0])
        label = variable(name) if name in Settings.model_fields else name.upper()
        sentences.append(f"{label}: {message}.")
    return " ".join(sentences)
