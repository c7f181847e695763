"""What a model is told besides the messages that it reads: what the user is called, what is
remembered near to them, and which attributes are in use.

None of it is what the model in the conversation was shown, so saying it again is judged like
anything else that is said. Rules read without it: nothing is looked up for them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import Any, Final

from sqlalchemy import Row

from app.identity.agents.embedders import Embedders, embed
from app.identity.users.repository import UserRepository
from app.language.llm.extractor import ConversationTurn, ExtractionRequest, KnownMemory
from app.language.llm.prompt_lines import MOST_KNOWN
from app.language.text.names import name_key
from app.language.text.pieces import parts_within
from app.language.text.traits import is_trivial
from app.memory.extraction.known_repository import KnownRepository
from app.memory.extraction.run_state import RunRequest, RunState
from app.memory.extraction.shared_words import sharing_words
from app.platform.database.engine import Database

MOST_PIECES: Final = 20
LONGEST_PIECE: Final = 500
"""Of what is read, so many pieces of so many characters are compared with what is remembered."""

MOST_ATTRIBUTES: Final = 60


class KnownMemories:
    """Adds to what a run reads; shared by the whole process."""

    def __init__(self, database: Database, embedders: Embedders) -> None:
        self._database = database
        self._embedders = embedders

    async def add(self, state: RunState) -> RunState:
        """The state whose request tells what is known; as it was where no model is asked.

        Raises:
            UnknownEmbedderError, EmbeddingUnavailableError: nothing was read; try again.

        """
        if state.model.extractor.model is None or state.silenced:
            return state
        reading = await self._told(state.request)
        return replace(state, request=replace(state.request, reading=reading))

    async def _told(self, request: RunRequest) -> ExtractionRequest:
        principal, scopes, turns = request.principal, request.context.scopes, request.reading.turns
        # The experience of a session is drawn from its course alone.
        pieces = [] if request.summary else pieces_of(turns)
        embedder = await self._embedders.for_writing(principal, scopes.agent_id)
        vectors = await embed(embedder, pieces) if pieces else []
        owners = [owner for name in scopes.names if (owner := scopes.owner_of(name))]
        async with self._database.begin(principal.tenant_id) as db:
            users = UserRepository(db, principal.access)
            user = await users.find(scopes.user_id) if scopes.user_id else None
            look = KnownRepository(db, principal.access, owners, request.ignored)
            rows = await look.near(pieces, vectors, embedder) if pieces else []
            attributes = await look.attributes(most=MOST_ATTRIBUTES) if pieces else []
        return replace(
            request.reading,
            user_name=(user and user.user_name) or name_said(turns, scopes.user_id),
            known=tuple(islice(_nearest_first(pieces, rows), MOST_KNOWN)),
            attributes=attributes,
        )


def pieces_of(turns: Sequence[ConversationTurn]) -> list[str]:
    """What of the new turns of the user is compared with what is remembered; of more than
    MOST_PIECES every second, or third.
    """
    said = (
        turn.content
        for turn in turns
        if turn.role == "user" and not turn.context and not is_trivial(turn.content)
    )
    pieces = [piece for content in said for piece in parts_within(content, LONGEST_PIECE)]
    return pieces[:: -(-len(pieces) // MOST_PIECES)] if pieces else []


def _nearest_first(pieces: Sequence[str], rows: Sequence[Row[Any]]) -> Iterator[KnownMemory]:
    """Memories, each once: the best of every piece before the second of any."""
    found = {row.memory_id: row for row in rows}
    ranked = []
    for place, piece in enumerate(pieces, 1):
        own = [row for row in rows if row.place == place]
        near = sorted(
            (row for row in own if row.similarity is not None), key=lambda row: -row.similarity
        )
        alike = {row.memory_id: row.content for row in own if row.similarity is None}
        ranked += [[row.memory_id for row in near], sharing_words(piece, alike)]
    ids = chain.from_iterable(zip_longest(*ranked))
    for memory_id in dict.fromkeys(each for each in ids if each is not None):
        row = found[memory_id]
        yield KnownMemory(row.content, row.attribute, row.valid_from, row.valid_to, row.said_at)


def name_said(turns: Sequence[ConversationTurn], user_id: str | None) -> str | None:
    """What messages call the user: by the one name that all of them bear, or by the user's id.

    Of several names none is known for the user's: None.
    """
    names = {turn.name for turn in turns if turn.role == "user"}
    if len(names) == 1:
        return names.pop()
    own = [name for name in names if name and user_id and name_key(name) == name_key(user_id)]
    return own[0] if own else None
