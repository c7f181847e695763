"""What options of `kemem eval` mean: depths, fields of a search; and which service any command
that calls one is for.
"""

import json
from typing import Any

from app.cli.first_key import key_file, read_key
from app.cli.opening import data_dir_of
from app.console import UNUSABLE, fail
from app.errors import ConfigurationError
from app.settings import Settings
from kemem.address import KEY_VARIABLE, Service, find_service
from kemem.errors import ConfigurationError as UnusableAddressError

MOST_HITS = 100
"""What one search may return."""

OWN_FIELDS = frozenset({"query", "user_id", "limit"})


def depths(text: str) -> list[int]:
    """Increasing, each once."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        fail(
            f"--k takes numbers separated by commas, such as 5,10, and not {text!r}.", code=UNUSABLE
        )
    depths = sorted({int(part) for part in parts})
    if not 1 <= depths[0] <= depths[-1] <= MOST_HITS:
        fail(f"--k takes numbers from 1 to {MOST_HITS}: a search returns no more.", code=UNUSABLE)
    return depths


def search_fields(given: list[str], mode: str | None) -> dict[str, Any]:
    """What every search says besides its question."""
    fields: dict[str, Any] = {} if mode is None else {"mode": mode}
    for one in given:
        name, _, value = one.partition("=")
        if name in OWN_FIELDS or name in fields:
            fail(
                f"--search {name}: the evaluation says that itself, or it is there twice.",
                code=UNUSABLE,
            )
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fail(
                f"--search {name}: what follows the = is no JSON. Texts need quotes: "
                f"--search '{name or 'mode'}=\"lexical\"'.",
                code=UNUSABLE,
            )
    return fields


def service_meant(url: str | None, key: str | None, settings: Settings) -> Service:
    """The service of --url and --key, or of KEMEM_URL and KEMEM_API_KEY, as the client finds it.

    Raises:
        ConfigurationError: the address is none, or there is no key for it.

    """
    address = url or f"http://127.0.0.1:{settings.port}"
    try:
        if key:
            return find_service(address, key, {})
        if not find_service(address, "unknown", {}).is_local:
            raise ConfigurationError(
                f"There is no API key for {address}: give it with --key, or in {KEY_VARIABLE}. The "
                "key of a service on this machine is not sent to other machines."
            )
        folder = data_dir_of(settings)
        kept = read_key(folder)
        if kept is None:
            raise ConfigurationError(
                f"There is no key in {key_file(folder)}: run `make run` (or `kemem serve`) first, "
                f"or give a key with --key, or in {KEY_VARIABLE}."
            )
        return find_service(address, kept, {})
    except UnusableAddressError as error:
        sentence = (
            str(error).replace("base_url", "--url").replace("argument api_key", "option --key")
        )
        raise ConfigurationError(sentence.replace("api_key", "--key")) from None
