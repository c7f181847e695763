"""The data folder of the embedded service: what lies where, who holds it, its secrets.

One process at a time owns the folder, by a lock that the kernel drops with its holder.
Every file here is for one operating system user alone.
"""

import base64
import errno
import fcntl
import json
import os
import secrets
import stat
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import platformdirs

from app.errors import ConfigurationError

POSTGRES_MAJOR = 18


class DataFolderInUseError(ConfigurationError):
    """Another process holds the data folder."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        holder = f"the process with pid {pid}" if pid else "another process"
        super().__init__(
            f"The data folder {folder} is in use by {holder}. Stop that process, or choose "
            "another folder with --data-dir, or use the running service at its address."
        )
        self.pid = pid


def default_data_dir() -> Path:
    """The default data folder; root's is readable for the account of PostgreSQL."""
    if os.geteuid() == 0:
        return Path("/var/lib/kemem")
    return platformdirs.user_data_path("kemem")


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The paths inside one data folder."""

    root: Path

    @property
    def cluster(self) -> Path:
        return self.root / f"postgres-{POSTGRES_MAJOR}"

    @property
    def sockets(self) -> Path:
        return self.root / "socket"

    @property
    def log(self) -> Path:
        return self.root / "postgres.log"

    @property
    def lock(self) -> Path:
        return self.root / "kemem.lock"

    @property
    def clients(self) -> Path:
        return self.root / "guests.lock"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets.json"

    @property
    def serving_password(self) -> Path:
        return self.root / "serving.password"

    @property
    def secret_key(self) -> Path:
        return self.root / "secret.key"

    @property
    def state(self) -> Path:
        return self.root / "state.json"


def open_data_folder(path: Path) -> DataFolder:
    """The folder, made when it is missing; an existing one keeps its mode.

    Raises:
        ConfigurationError: it cannot be made, or belongs to another user.

    """
    root = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100  # resolve() follows links.
    try:
        _make(root)
        if not root.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "it is no folder")
        owner = root.stat().st_uid
    except OSError as error:
        raise ConfigurationError(
            f"The data folder {root} cannot be used: {error.strerror}. "
            "Choose another with --data-dir."
        ) from error
    if owner != os.geteuid():
        # Files of ours in it would lock its owner out, and its owner could swap them.
        raise ConfigurationError(
            f"The data folder {root} belongs to the user with uid {owner}. Run KeMem as that "
            "user, or choose another folder with --data-dir."
        )
    return DataFolder(root)


def is_data_folder(path: Path) -> bool:
    """Whether something is there already; asking makes nothing."""
    return path.expanduser().exists()


def _make(root: Path) -> None:
    # Root's own files are 0600 each; its account must be able to pass through.
    own_mode, parent_mode = (0o711, 0o755) if os.geteuid() == 0 else (0o700, 0o700)
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        # Said again, because the umask takes away from what mkdir is given.
        folder.chmod(own_mode if folder == root else parent_mode)


class FolderLock:
    """Exclusive hold on a data folder, for as long as the process lives."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock or say who has it; never waits.

        Raises:
            DataFolderInUseError: a process has it, maybe this one.

        """
        file = open_lock(self._folder.lock)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            if isinstance(error, BlockingIOError):
                raise DataFolderInUseError(self._folder.root, holder_of(self._folder)) from None
            raise ConfigurationError(
                f"The data folder {self._folder.root} cannot be locked: {error.strerror}. "
                "Choose a folder on a local disk with --data-dir."
            ) from error
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file = file

    def release(self) -> None:
        """Give the lock back; safe to repeat. The file stays: removing it would race."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def open_lock(path: Path) -> int:
    """A descriptor of a private lock file, which children do not inherit."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def holder_of(folder: DataFolder) -> int | None:
    """The pid in the lock file, or None; says nothing about whether it is alive."""
    try:
        return int(folder.lock.read_text())
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class ClusterPasswords:
    """Passwords of the superuser, of the login that migrates, and of the one that serves."""

    superuser_password: str = field(repr=False)
    service_password: str = field(repr=False)
    serving_password: str = field(repr=False, default="")
    """Empty in a folder of a release that had one login for both, until it is next started."""


def read_secrets(folder: DataFolder) -> ClusterPasswords:
    """The passwords of an existing cluster.

    Raises:
        ConfigurationError: the file is missing or damaged.

    """
    try:
        if stat.S_IMODE(folder.secrets.stat().st_mode) & 0o077:
            folder.secrets.chmod(0o600)
        kept = json.loads(folder.secrets.read_text())
        passwords = ClusterPasswords(kept["superuser_password"], kept["service_password"])
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise ConfigurationError(
            f"The passwords in {folder.secrets} cannot be read ({type(error).__name__}). Restore "
            f"the file from a backup, or move {folder.cluster} away to begin with no data."
        ) from None
    # In a file of its own: releases with one login refuse a third name in theirs.
    if folder.serving_password.exists():
        passwords = replace(passwords, serving_password=folder.serving_password.read_text())
    return passwords


def create_secrets(folder: DataFolder) -> ClusterPasswords:
    """New random passwords, on disk before anything uses them."""
    fresh = {name: secrets.token_urlsafe(32) for name in ("superuser_password", "service_password")}
    write_private(folder.secrets, json.dumps(fresh))
    return complete_secrets(folder)


def ensure_secret_key(folder: DataFolder) -> str:
    """What encrypts secrets in the database; made, and on disk, when it is missing."""
    if not folder.secret_key.exists():
        write_private(folder.secret_key, base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
    return folder.secret_key.read_text().strip()


def complete_secrets(folder: DataFolder) -> ClusterPasswords:
    """The passwords of an existing cluster, with a new one for a login that had none.

    Raises:
        ConfigurationError: the file is missing or damaged.

    """
    kept = read_secrets(folder)
    if not kept.serving_password:
        kept = replace(kept, serving_password=secrets.token_urlsafe(32))
        write_private(folder.serving_password, kept.serving_password)
    return kept


@dataclass(frozen=True, slots=True)
class ServerState:
    """How a second process reaches the running PostgreSQL. Holds no secret."""

    pid: int
    socket_folder: str


def read_state(folder: DataFolder) -> ServerState | None:
    """What the holder of the folder wrote when it was ready; None when it is not."""
    try:
        state = ServerState(**json.loads(folder.state.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return state if state.pid == holder_of(folder) else None


def write_state(folder: DataFolder, socket_folder: Path) -> None:
    """Say in the data folder that this process's server is ready, and where."""
    write_private(folder.state, json.dumps(asdict(ServerState(os.getpid(), str(socket_folder)))))


def write_private(path: Path, text: str) -> None:
    """Replace a file by one of mode 0600, whole or not at all, also after a power cut."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123  # A mode from the start.
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make renames inside the folder survive a power cut."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
