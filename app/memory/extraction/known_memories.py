"""What a model is told besides the messages it reads, so that it knows whom they are about.

Rules read without it, so nothing is looked up for them.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.identity.users.repository import UserRepository
from app.language.llm.extractor import ConversationTurn
from app.language.text.names import name_key
from app.memory.extraction.run_state import RunState
from app.platform.database.engine import Database


class KnownMemories:
    """Adds to what a run reads; shared by the whole process."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, state: RunState) -> RunState:
        """The state whose request tells what is known; as it was where no model is asked."""
        if state.model.extractor.model is None or state.silenced:
            return state
        request = state.request
        user_id = request.context.scopes.user_id
        async with self._database.begin(request.principal.tenant_id) as db:
            users = UserRepository(db, request.principal.access)
            user = None if user_id is None else await users.find(user_id)
        given = None if user is None else user.user_name
        name = given or name_said(request.reading.turns, user_id)
        return replace(
            state, request=replace(request, reading=replace(request.reading, user_name=name))
        )


def name_said(turns: Sequence[ConversationTurn], user_id: str | None) -> str | None:
    """What messages call the user: by the one name that all of them bear, or by the user's id.

    Of several names none is known for the user's: None.
    """
    names = {turn.name for turn in turns if turn.role == "user"}
    if len(names) == 1:
        return names.pop()
    own = [name for name in names if name and user_id and name_key(name) == name_key(user_id)]
    return own[0] if own else None
