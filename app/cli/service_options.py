"""Which running service a command calls: the options that say it, and what they mean."""

import os
from typing import Annotated

import typer

from app.errors import ConfigurationError
from app.settings import Settings
from kemem.address import (
    FOLDER_VARIABLE,
    KEY_VARIABLE,
    URL_VARIABLE,
    Service,
    find_service,
)
from kemem.errors import ConfigurationError as UnusableAddressError

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
