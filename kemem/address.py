"""The address of the service and the key: from arguments, from the environment, or of the service
that `kemem serve` runs on this machine.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import httpx

from kemem.errors import ConfigurationError
from kemem.running_services import RunningService, is_mine, recorded_services

URL_VARIABLE = "KEMEM_URL"
KEY_VARIABLE = "KEMEM_API_KEY"
FOLDER_VARIABLE = "MEMORY_DATA_DIR"
DEFAULT_URL = "http://127.0.0.1:8000"
_PORTS = {"http": 80, "https": 443}
_LONGEST_KEY = 4096


class _NotOwnError(OSError):
    """It is no file, or one of another user."""


@dataclass(frozen=True, slots=True)
class Service:
    """An address and the key for it. `repr` does not show the key."""

    base_url: str
    key: str = field(repr=False)
    key_origin: str
    """Where the key is from, for error messages."""
    acting_user: str | None = None
    """The user for whom requests are made."""
    was_recorded: bool = False
    """Whether the service recorded on this machine that it runs at this address."""

    @property
    def is_local(self) -> bool:
        return self.was_recorded or _is_loopback(httpx.URL(self.base_url).host)


def find_service(
    base_url: str | None,
    api_key: str | None,
    environ: Mapping[str, str],
    *,
    default_url: str = DEFAULT_URL,
) -> Service:
    """The service that arguments and environment name, else the one that runs on this machine.

    Without an address it is the service of the data folder that MEMORY_DATA_DIR names, else that
    of the default folder, else the only one that runs. The key file of this machine is read only
    for addresses of this machine.

    Args:
        default_url: where a service is expected that has not recorded itself.

    Raises:
        ConfigurationError: the address is invalid, there is no key for it, several services run,
            or the one that ran was killed.

    """
    given = base_url or environ.get(URL_VARIABLE)
    address = _address(given) if given else None
    key, origin = api_key, "the argument api_key"
    if not key:
        key, origin = environ.get(KEY_VARIABLE), KEY_VARIABLE
    if address and key:
        return Service(address, _valid_key(key, origin), origin)
    recorded = recorded_services(environ)
    if address:
        record = _answering_at(address, recorded)
    else:
        record = _running_here(recorded, environ, needs_key=not key)
        address = record.base_url if record else default_url
    if not key:
        if record is None and not _is_loopback(httpx.URL(address).host):
            raise ConfigurationError(
                f"There is no API key for {address}: set {KEY_VARIABLE}, or pass api_key. The key "
                "of a service on this machine is not sent to other machines."
            )
        file = record.data_dir / "key" if record else key_file(environ)
        key, origin = _kept_key(file, address), f"the file {file}"
    return Service(address, _valid_key(key, origin), origin, was_recorded=record is not None)


def _answering_at(address: str, recorded: list[RunningService]) -> RunningService | None:
    """The service that runs at the address; names of the loopback interface are alike."""
    running = [record for record in recorded if record.is_running]
    alike = [record for record in running if record.base_url == address]
    return next(
        iter(alike or [record for record in running if _is_alike(record.base_url, address)]), None
    )


def _is_alike(one: str, other: str) -> bool:
    urls = httpx.URL(one), httpx.URL(other)
    places = {(url.scheme, url.port or _PORTS.get(url.scheme), url.path) for url in urls}
    return len(places) == 1 and all(_is_loopback(url.host) for url in urls)


def _running_here(
    recorded: list[RunningService], environ: Mapping[str, str], *, needs_key: bool
) -> RunningService | None:
    """The service meant when no address is given, or None when none has recorded itself.

    Raises:
        ConfigurationError: it cannot be told which is meant, or the one meant was killed.

    """
    file = key_file(environ)
    folder = os.path.realpath(file.parent)
    meant = [record for record in recorded if os.path.realpath(record.data_dir) == folder]
    running = [record for record in meant if record.is_running]
    if not running and not environ.get(FOLDER_VARIABLE):
        running = [record for record in recorded if record.is_running]
        # A killed service elsewhere is meant only if there never was one in the default folder.
        meant = meant if meant or file.exists() else recorded
    if len(running) > 1:
        named = ", ".join(map(str, running))
        raise ConfigurationError(
            f"Several services run on this machine: {named}. Say which one with {URL_VARIABLE} or "
            f"{FOLDER_VARIABLE}."
        )
    if not running and meant and needs_key:
        raise ConfigurationError(
            f"The service at {meant[0]} is not running any more: it was killed. Start it again "
            f"with `make run` or `kemem serve`, or name another in {URL_VARIABLE}."
        )
    return running[0] if running else None


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
        key = _read_own(file)
    except FileNotFoundError:
        key = ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"There is no API key for {address}, and the one in {file} cannot be read "
            f"({_reason(error)}): {how}."
        ) from None
    if not key:
        raise ConfigurationError(
            f"There is no API key for {address}: {how}; or run `make run` or `kemem serve` on this "
            f"machine, which stores one in {file}. If the service has another data folder, name "
            f"that in {FOLDER_VARIABLE}."
        )
    return key


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, _NotOwnError) else type(error).__name__


def _read_own(path: Path) -> str:
    """What the file of this user holds; raises OSError."""
    # Without waiting for whoever writes to a named pipe.
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not is_mine(file):
            raise _NotOwnError("it is no file of this user")
        return os.read(file, _LONGEST_KEY).decode().strip()
    finally:
        os.close(file)


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
