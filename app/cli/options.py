"""Options that several commands have: the settings with them, and which running service a command
calls.
"""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import SecretStr

from app.errors import ConfigurationError
from app.platform.embedded.data_folder import default_data_dir, ensure_secret_key, open_data_folder
from app.settings import Settings, load_settings
from kemem.address import (
    FOLDER_VARIABLE,
    KEY_VARIABLE,
    URL_VARIABLE,
    Service,
    find_service,
)
from kemem.errors import ConfigurationError as UnusableAddressError

DataDirOption = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of the embedded PostgreSQL; MEMORY_DATA_DIR, else the user's data folder, "
        "when left out.",
        show_default=False,
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        envvar=URL_VARIABLE,
        help="Address of the service; the one that runs on this machine when left out.",
        show_default=False,
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        envvar=KEY_VARIABLE,
        help="API key with the scope admin; the one of that service on this machine when left out.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def settings_with(**options: Any) -> Settings:
    """The settings, with the options somebody gave on top.

    Raises:
        ConfigurationError: one sentence says what to mend.

    """
    given = {name: value for name, value in options.items() if value is not None}
    settings = load_settings(**given)
    if "data_dir" in given and not settings.embedded:
        raise ConfigurationError(
            "--data-dir is for the embedded PostgreSQL, and DATABASE_URL names another: leave "
            "one of them out."
        )
    if given.get("data_dir") == Path():
        # An unset shell variable would spread a database over the current folder.
        raise ConfigurationError("--data-dir needs a folder of its own, such as ./kemem-data.")
    return settings


def data_dir_of(settings: Settings) -> Path:
    """Where the embedded service keeps everything."""
    return settings.data_dir or default_data_dir()


def with_kept_key(settings: Settings) -> Settings:
    """Settings of the embedded service: the key of its folder decrypts, and encrypts if
    MEMORY_SECRET_KEY is not set.
    """
    kept = ensure_secret_key(open_data_folder(data_dir_of(settings)))
    keys = ",".join([*settings.secret_keys, kept])
    return settings.model_copy(update={"secret_key": SecretStr(keys)})


def service_meant(url: str | None, key: str | None, settings: Settings) -> Service:
    """The service of --url and --key, or of KEMEM_URL and KEMEM_API_KEY; else the one that the
    client finds on this machine.

    Raises:
        ConfigurationError: the address is none, there is no key for it, or several services run.

    """
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in {URL_VARIABLE, KEY_VARIABLE, FOLDER_VARIABLE}
    }
    if settings.data_dir is not None:
        environ[FOLDER_VARIABLE] = str(settings.data_dir)
    try:
        return find_service(url, key, environ, default_url=f"http://127.0.0.1:{settings.port}")
    except UnusableAddressError as error:
        sentence = (
            str(error)
            .replace("base_url", "--url")
            .replace("argument api_key", "option --key")
            .replace(
                f"set {KEY_VARIABLE}, or pass api_key", f"give it with --key, or in {KEY_VARIABLE}"
            )
        )
        raise ConfigurationError(sentence.replace("api_key", "--key")) from None
