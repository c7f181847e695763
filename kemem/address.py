"""The address of the service and the key: from arguments, the environment, or the key that
`kemem serve` stored on this machine.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import httpx

from kemem.errors import ConfigurationError

URL_VARIABLE = "KEMEM_URL"
KEY_VARIABLE = "KEMEM_API_KEY"
FOLDER_VARIABLE = "MEMORY_DATA_DIR"
DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class Service:
    """An address and the key for it. `repr` does not show the key."""

    base_url: str
    key: str = field(repr=False)
    key_origin: str
    """Where the key is from, for error messages."""
    acting_user: str | None = None
    """The user for whom requests are made."""

    @property
    def is_local(self) -> bool:
        return _is_loopback(httpx.URL(self.base_url).host)


def find_service(base_url: str | None, api_key: str | None, environ: Mapping[str, str]) -> Service:
    """The service that arguments and environment name.

    The key file of this machine is read only for addresses of this machine.

    Raises:
        ConfigurationError: the address is invalid, or there is no key for it.

    """
    address = _address(base_url or environ.get(URL_VARIABLE) or DEFAULT_URL)
    for key, origin in (
        (api_key, "the argument api_key"),
        (environ.get(KEY_VARIABLE), KEY_VARIABLE),
    ):
        if key:
            return Service(address, _valid_key(key, origin), origin)
    if not _is_loopback(httpx.URL(address).host):
        raise ConfigurationError(
            f"There is no API key for {address}: set {KEY_VARIABLE}, or pass api_key. The key of "
            "a service on this machine is not sent to other machines."
        )
    file = key_file(environ)
    key = _kept_key(file, address)
    return Service(address, _valid_key(key, str(file)), f"the file {file}")


def key_file(environ: Mapping[str, str]) -> Path:
    """The file in which `kemem serve` stores its key."""
    folder = environ.get(FOLDER_VARIABLE)
    return (Path(folder).expanduser() if folder else _default_folder(environ)) / "key"


def _default_folder(environ: Mapping[str, str]) -> Path:
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/kemem")
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/kemem"
    chosen = Path(environ.get("XDG_DATA_HOME", ""))
    return (chosen if chosen.is_absolute() else Path.home() / ".local/share") / "kemem"


def _kept_key(file: Path, address: str) -> str:
    how = f"set {KEY_VARIABLE}, or pass api_key"
    try:
        key = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        key = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"There is no API key for {address}, and the one in {file} cannot be read "
            f"({type(error).__name__}): {how}."
        ) from None
    if not key:
        raise ConfigurationError(
            f"There is no API key for {address}: {how}. A service started on this machine with "
            f"`make run` or `kemem serve` stores one in {file}, where this client finds it; "
            f"if the service has another data folder, name that in {FOLDER_VARIABLE}."
        )
    return key


def _valid_key(key: str, origin: str) -> str:
    """The key without surrounding white space.

    Raises:
        ConfigurationError: it has characters that no key has.

    """
    key = key.strip()
    if not key or not all("!" <= character <= "~" for character in key):
        raise ConfigurationError(
            f"The API key from {origin} is not valid: it has white space or characters that no key "
            "has. Copy it again."
        )
    return key


def _address(text: str) -> str:
    """An absolute URL without a trailing slash or `/v1`.

    Raises:
        ConfigurationError: it is no address of a service.

    """
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL()
    if url.scheme not in {"http", "https"} or not url.host:
        raise ConfigurationError(
            f"The address of the service is not valid: it should look like {DEFAULT_URL}. It comes "
            f"from base_url or from {URL_VARIABLE}."
        )
    if url.userinfo or url.query or url.fragment:
        raise ConfigurationError(
            "The address of the service may not hold a user, a password, a query or a fragment: "
            f"give the key in {KEY_VARIABLE} or as api_key."
        )
    return str(url).rstrip("/").removesuffix("/v1").rstrip("/")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
