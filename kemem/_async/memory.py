"""`AsyncMemory`: the client as a whole."""

from kemem._async.blocks import AsyncBlocks
from kemem._async.checkpoints import AsyncCheckpointMethods
from kemem._async.context import AsyncContextMethods
from kemem._async.documents import AsyncFolders
from kemem._async.exports import AsyncExportMethods
from kemem._async.forgetting import AsyncErasures, AsyncForgetting
from kemem._async.graph import AsyncGraph
from kemem._async.memories import AsyncMemoryMethods
from kemem._async.profiles import AsyncProfiles
from kemem._async.projects import AsyncProjects
from kemem._async.sessions import AsyncSessionMethods
from kemem._async.statistics import AsyncStatistics
from kemem._async.tools import AsyncToolMethods
from kemem.deprecated import OldMemoryNames


class AsyncMemory(
    OldMemoryNames,
    AsyncMemoryMethods,
    AsyncSessionMethods,
    AsyncContextMethods,
    AsyncCheckpointMethods,
    AsyncToolMethods,
    AsyncExportMethods,
):
    """The memory of an agent, kept by a KeMem service.

    It belongs to the event loop in which it is first used; tasks there may share it. Open it
    with `async with`. A call that is cancelled may still have its effect.

    Every call may raise the errors of `kemem.errors`. Requests are retried only where that is
    safe: nothing is done twice.

    Args:
        base_url: address of the service; by default KEMEM_URL, else that of the service that
            `kemem serve` runs on this machine, else http://127.0.0.1:8000.
        api_key: by default KEMEM_API_KEY, else the key of that service, which is used for
            addresses of this machine only.
        timeout: seconds for a call, including its retries and pauses.
        max_retries: how often a call is retried if the service cannot be reached, is busy, or
            names a time to wait that fits into `timeout`.
        http_client: an `httpx.AsyncClient` to use for all requests; it is not closed.
        acting_user: the user for whom requests are made: the service answers as it answers that
            user's own key. `acting_as` returns such a client that shares the connections.

    Raises:
        ConfigurationError: there is no key, the address is invalid, or several services run.

    Example:
        async with AsyncMemory() as memory:
            await memory.add("I moved to Munich last week.", user_id="ana")
            print(await memory.search("Where does she live?", user_id="ana"))

    """

    @property
    def blocks(self) -> AsyncBlocks:
        """Texts that are always in the context of the agents they are attached to."""
        return AsyncBlocks(self._send, self._collect)

    @property
    def folders(self) -> AsyncFolders:
        """Documents, and the passages that they are split into."""
        return AsyncFolders(self._send, self._collect)

    @property
    def projects(self) -> AsyncProjects:
        """Groups of users who share memories, and their members."""
        return AsyncProjects(self._send, self._collect)

    @property
    def profiles(self) -> AsyncProfiles:
        """What is known about users and projects, and memory documents in DeerFlow's format."""
        return AsyncProfiles(self._send, self._collect)

    @property
    def graph(self) -> AsyncGraph:
        """Entities that memories mention, and relations between them."""
        return AsyncGraph(self._send, self._collect)

    @property
    def forgetting(self) -> AsyncForgetting:
        """Automatic deletion: policies, a preview, and runs on request."""
        return AsyncForgetting(self._send, self._collect)

    @property
    def erasures(self) -> AsyncErasures:
        """Receipts of erasures."""
        return AsyncErasures(self._send, self._collect)

    @property
    def statistics(self) -> AsyncStatistics:
        """Whether what is remembered is found, and used."""
        return AsyncStatistics(self._send, self._collect)
