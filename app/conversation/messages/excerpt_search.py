"""Finding pieces of what was said before: at most two statements, the best pieces first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Final

import numpy as np

from app.conversation.messages.capture import CLIENT_TIME, client_time, searched_text
from app.conversation.messages.excerpt_ranking import (
    RatedMessages,
    RatedPieces,
    rated_messages,
    rated_pieces,
)
from app.conversation.messages.excerpts import Excerpts, FoundMessage
from app.conversation.messages.message_index import INDEXED_LENGTH
from app.conversation.messages.search_sql import MessagePlan, features_statement, pieces_statement
from app.identity.agents.embedders import EmbeddedQuery
from app.identity.tenants.access import Principal
from app.language.ranking.boosts import Boosts
from app.language.ranking.records import Records, read_records
from app.language.text.offload import in_turn
from app.platform.database.engine import Database
from app.platform.database.joint_reads import HotReads, Row

CANDIDATES: Final = 150
"""Messages whose pieces are compared; on BEAM and LoCoMo more of them find nothing more."""

FEWER_CANDIDATES: Final = 100
"""The same where 2,000 tokens are to be filled: on BEAM they show as much, in two thirds of the
time."""

TOKENS_PER_CANDIDATE: Final = 20

MOST_PIECES: Final = 400
"""The longest budget holds some 200 pieces."""

ROLES: Final = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class ExcerptQuery:
    """What is looked for, in whose conversations; the caller has checked that they may be read.

    Args:
        sessions: only of these; None for all of the user with the agent.
        shown: ids of messages that stand before the model anyway.
        given: role, content and parts of messages that stand there without being stored.
        session_id: of the session in which these may be stored too, with ids of their own.
        tokens: how many the excerpts may take together.
        lineage: of `session_id`, where it is a fork: what it has copies of.

    """

    asked: EmbeddedQuery
    user_id: str
    agent_id: str
    roles: Sequence[str] = ROLES
    since: datetime | None = None
    until: datetime | None = None
    sessions: Sequence[str] | None = None
    shown: Collection[str] = ()
    given: Sequence[tuple[str, str, Sequence[object] | None]] = ()
    session_id: str | None = None
    tokens: int = CANDIDATES * TOKENS_PER_CANDIDATE
    lineage: Sequence[tuple[str, int]] = ()


def candidates(tokens: int) -> int:
    """Of how many messages the pieces are compared where so many tokens are to be filled."""
    return min(max(tokens // TOKENS_PER_CANDIDATE, FEWER_CANDIDATES), CANDIDATES)


class ExcerptSearch:
    """Finds what was said about a query, in pieces that can be shown by themselves."""

    def __init__(self, database: Database, boosts: Boosts, tags: Sequence[str]) -> None:
        """Prepare for blocks of `tags`, which a middleware put into messages."""
        self._database = database
        self._boosts = boosts
        self._tags = tags

    async def find(
        self, principal: Principal, wanted: ExcerptQuery, reads: HotReads | None = None
    ) -> Excerpts:
        """The pieces of the best messages, best first, with all that their layout needs.

        What was said while memory was paused, hidden messages, tools and their calls are never
        among them, nor what the caller's key may not read. At most the newest 20,000 messages are
        looked at. Writes nothing.

        Args:
            principal: who asks.
            wanted: what is looked for.
            reads: what sends the statements; each is sent by itself when left out.

        """
        reads = reads or self._database
        plan = self._plan(principal, wanted)
        text, values, columns = features_statement(plan)
        [seen] = await reads.fetch(principal.tenant_id, text, *values)
        ids: Sequence[str] = seen["ids"] or ()
        if not ids:
            return Excerpts()
        records = read_records(seen["records"], columns)
        if not _has_others(ids, records, wanted.shown):
            return Excerpts(searched=len(ids), left_out=seen["left_out"])
        share = wanted.asked.vectors.dense_share
        boosts = self._boosts.with_dense(latin=share.latin, cjk=share.cjk)
        work = plan.asked.products(len(ids))
        most = candidates(wanted.tokens)
        rated = await in_turn(
            work, rated_messages, ids, records, plan.asked, boosts, wanted.shown, most
        )
        pieces = await compared(reads, principal, plan, ids, rated, self._tags)
        if pieces is None:
            return Excerpts(searched=len(ids), left_out=seen["left_out"])
        given = {
            (wanted.session_id, role, _said(said, parts, self._tags))
            for role, said, parts in wanted.given
        }
        best = pieces.best(MOST_PIECES)
        return Excerpts(
            [each for each in best if not given or _identity(each.message) not in given],
            {message.session_id: int(rated.sessions[message.place]) for message in pieces.messages},
            int(rated.sessions.max()),
            len(ids),
            left_out=seen["left_out"],
        )

    @staticmethod
    def _plan(principal: Principal, wanted: ExcerptQuery) -> MessagePlan:
        return MessagePlan(
            access=principal.access,
            # No message is shown with the cosine of the query as it stands.
            vectors={},
            asked=wanted.asked.parsed,
            session_id=None,
            user_id=wanted.user_id,
            agent_id=wanted.agent_id,
            roles=wanted.roles,
            since=wanted.since,
            until=wanted.until,
            sessions=wanted.sessions,
            remembered=True,
            beside=wanted.session_id,
            lineage=wanted.lineage,
        )


def _has_others(ids: Sequence[str], records: Records, shown: Collection[str]) -> bool:
    """Whether any message may be shown that is not in `shown`."""
    places = np.flatnonzero(records["eligible"])
    return len(places) > len(shown) or any(ids[place] not in shown for place in places.tolist())


async def compared(
    database: HotReads,
    principal: Principal,
    plan: MessagePlan,
    ids: Sequence[str],
    rated: RatedMessages,
    tags: Sequence[str],
) -> RatedPieces | None:
    """The pieces of the best rated messages, in one statement; None when there are none.

    Args:
        database: where they are read.
        principal: who asks.
        plan: as the messages were searched.
        ids: of all messages, by place.
        rated: all messages.
        tags: blocks of these are no part of a message's text.

    """
    chosen = [ids[place] for place in rated.places]
    if not chosen:
        return None
    text, values, columns = pieces_statement(plan, chosen)
    found = await database.fetch(principal.tenant_id, text, *values)
    # In one order whatever the plan was: it decides between equals.
    rows = sorted(found, key=itemgetter("session_id", "sequence_no"))
    places = dict(zip(chosen, rated.places, strict=True))
    messages = [_message(row, places[row["message_id"]], tags) for row in rows]
    if not messages:
        # All were deleted meanwhile.
        return None
    packed = b"".join(row["records"] for row in rows if row["records"])
    records = read_records(packed, columns)
    return await in_turn(plan.asked.products(len(records)), rated_pieces, rated, messages, records)


def _message(row: Row, place: int, tags: Sequence[str]) -> FoundMessage:
    asked, metadata = row["request"], row["metadata"]
    # The day that the speaker called it; most say none.
    told = client_time(metadata) if CLIENT_TIME in metadata else None
    return FoundMessage(
        place=place,
        message_id=row["message_id"],
        session_id=row["session_id"],
        role=row["role"],
        name=row["name"],
        sequence_no=row["sequence_no"],
        session_messages=row["session_messages"],
        said_at=told or row["said_at"],
        read=partial(_said, row["content"], row["content_parts"], tags),
        ends=row["piece_ends"] if row["records"] else [INDEXED_LENGTH],
        read_request=None if asked is None else partial(_said, asked, row["request_parts"], tags),
        wish=row["wish"],
    )


def _identity(message: FoundMessage) -> tuple[str, str, str]:
    return message.session_id, message.role, message.text


def _said(content: str, parts: Sequence[object] | None, tags: Sequence[str]) -> str:
    """What is searched of a message, as `message_index.searchable_text` gives it."""
    return searched_text(content, parts, tags)[:INDEXED_LENGTH]
