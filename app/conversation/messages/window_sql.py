"""Pieces of SQL that read a window: its newest end within a budget, or all of it.

The end is read newest first and never further than its budget reaches, since no message takes
less than `OVERHEAD` tokens; so it costs the same for a session of any length. The pieces are
texts for a statement over the driver as for one in a transaction: the caller names the
tenant, the row of `sessions` and the bounds.
"""

from typing import Final

from app.conversation.messages.models import CALLS, INSTRUCTS
from app.language.llm.tokens import OVERHEAD

# Rows of the previous release have no count: four letters of any script but Han, kana and
# Hangul make a token, and these make one and a half each.
TOKENS: Final = f"""coalesce({{m}}.token_count, {OVERHEAD} + ceil(
    0.28 * char_length({{m}}.content)
    + 0.6 * (octet_length({{m}}.content) - char_length({{m}}.content))
    + 0.28 * coalesce(octet_length(CAST({{m}}.tool_calls AS text)), 0)))"""

_COLUMNS: Final = (
    "m.message_id, m.sequence_no, m.role, m.create_time, m.tool_calls, m.tool_call_id, "
    f"m.metadata ->> 'event_type' AS event_type, CAST({TOKENS.format(m='m')} AS int8) AS tokens"
)

MOST_BYTES: Final = 4 * 1024 * 1024
"""Of contents, parts and calls as stored, whatever the budget is: an image takes few tokens and
may be large, and a budget may be larger than anybody wants to send."""

SMALL_PARTS: Final = 8 * 1024
"""Bytes of a message's parts, as stored, that are read however many others have."""

_PARTS: Final = (
    f"CASE WHEN pg_column_size(m.content_parts) > {SMALL_PARTS} "
    "THEN pg_column_size(m.content_parts) ELSE 0 END"
)
_TEXT_BYTES: Final = (
    "octet_length(m.content) + coalesce(octet_length(m.searched_text), 0) "
    "+ coalesce(pg_column_size(m.tool_calls), 0)"
)

RESULT: Final = 24
"""Tokens that a result takes at least, in the shortest form in which it is shown."""

CHARACTERS: Final = 4
"""For a token of the budget, at each end of a text that is longer than the budget."""

RESULTS_BEHIND: Final = 50
"""How far behind a call that waits its other results are looked for: as many as a message may
have calls."""


def _stretches(session: str) -> str:
    """The window as ranges of numbers; more than one where a restore has set some aside."""
    return (
        f"unnest(int8multirange(int8range({session}.in_context_from, "
        f"{session}.last_sequence_no, '(]')) - {session}.set_aside) AS stretch(numbers)"
    )


def _inside(tenant: str, session: str) -> str:
    return (
        f"m.tenant_id = {tenant} AND m.session_id = {session}.session_id "
        "AND m.sequence_no >= lower(stretch.numbers) AND m.sequence_no < upper(stretch.numbers)"
    )


def whole_rows(*, tenant: str, session: str, extra: str = "") -> str:
    """Every message of the window with its opening, oldest first; columns as `window_message`
    wants them.

    Args:
        tenant: SQL for the tenant's id.
        session: what the row of `sessions` is called.
        extra: further columns of `messages`, which is called m, after a comma.

    """
    opening = (
        f"m.tenant_id = {tenant} AND m.session_id = {session}.session_id "
        f"AND m.sequence_no = {session}.opening_seq"
    )
    return (
        f"SELECT {_COLUMNS}{extra} FROM {_stretches(session)} "
        f"JOIN messages AS m ON {_inside(tenant, session)} "
        f"UNION ALL SELECT {_COLUMNS}{extra} FROM messages AS m WHERE {opening} "
        "ORDER BY sequence_no"
    )


def tail_rows(
    *, tenant: str, session: str, budget: str, instructions: str, held: str | None = None
) -> str:
    """The newest end of the window, and what any choice from it needs, oldest first.

    These are the messages that fit the budget in their shortest forms, and MOST_BYTES, with one
    more, the opening, the current request, the window's first message, the newest call of the
    current turn and calls that wait for an approval, with their results and the request before
    them, and the newest instructions, wherever they stand.

    A text that is longer than the budget comes as its ends, `content` and `text_end`, with the
    `length` of the whole. A result before the newest that fit as they are is not read, as only the
    line in its place can be shown: `is_read`. Behind MOST_BYTES of newer ones the parts of a
    message are not read, only their names: `is_bare`. From `unbroken_from` on there is no gap.

    Args:
        tenant, session: as for `whole_rows`.
        budget: SQL for the tokens that are to be shown.
        instructions: SQL for the tokens that instructions may take of it.
        held: SQL for the tokens of the newest messages whose results are read; the budget when
            left out.

    """
    own = f"m.tenant_id = {tenant} AND m.session_id = {session}.session_id"
    others = " UNION ALL ".join(
        [
            _first_numbers(tenant, session),
            f"SELECT CAST({session}.last_user_seq AS int8)",
            f"SELECT CAST({session}.opening_seq AS int8)",
            _step_numbers(tenant, session),
            _waiting_numbers(tenant, session),
            _instruction_numbers(tenant, session, instructions),
        ]
    )
    # Each by its number, behind a fence: where sessions are short on the average, all of one
    # would else be read by another index and thrown away again.
    return (
        f"SELECT {_COLUMNS}, newest.unbroken_from, {_TEXTS} "
        f"FROM ({_newest_numbers(tenant, session, budget, held or budget)}) AS newest "
        f"LEFT JOIN LATERAL ({_step(tenant, session)}) AS step ON true "
        f"CROSS JOIN LATERAL (SELECT DISTINCT number "
        f"FROM unnest(newest.numbers || ARRAY({others})) AS each(number)) AS wanted "
        f"CROSS JOIN LATERAL (SELECT * FROM messages AS m WHERE {own} "
        "AND m.sequence_no = wanted.number OFFSET 0) AS m "
        f"CROSS JOIN LATERAL ({_text(session, budget)}) AS said ORDER BY m.sequence_no"
    )


_TEXTS: Final = (
    "m.name, said.is_read, said.is_bare, CASE WHEN NOT said.is_read THEN '' "
    "WHEN said.is_long THEN left(said.text, said.ends) WHEN said.is_bare THEN concat_ws(chr(10), "
    "coalesce(m.searched_text, m.content), concat('[parts of message ', m.message_id, ']')) "
    "ELSE m.content END AS content, "
    "CASE WHEN said.is_long THEN right(said.text, said.ends) END AS text_end, "
    "CASE WHEN said.is_long THEN char_length(said.text) END AS length, "
    "CASE WHEN said.is_bare THEN NULL WHEN said.is_long THEN said.parts "
    "WHEN said.is_read THEN m.content_parts END AS content_parts"
)


def _text(session: str, budget: str) -> str:
    """What of one message is read: of what cannot be shown whole, its text alone is looked at."""
    of_parts = (
        "SELECT string_agg(part ->> 'text', chr(10)) FILTER (WHERE said) AS text, "
        "jsonb_agg(part) FILTER (WHERE NOT said) AS others "
        "FROM (SELECT part, coalesce(part ->> 'type', 'text') IN ('text', 'input_text', "
        "'output_text') AND part ->> 'text' IS NOT NULL AS said "
        "FROM jsonb_array_elements(m.content_parts) AS part) AS part "
        "WHERE form.is_over AND m.content_parts IS NOT NULL"
    )
    return (
        # One that is too long by its images alone is read as it is.
        "SELECT whole.*, whole.is_over AND (m.content_parts IS NULL "
        "OR char_length(whole.text) > whole.ends) AS is_long FROM ("
        f"SELECT form.*, form.is_read AND {_PARTS} > 0 AND m.sequence_no < newest.parts_from "
        f"AND m.sequence_no NOT IN ({session}.last_user_seq, {session}.opening_seq) AS is_bare, "
        "parts.others AS parts, CASE WHEN form.is_over "
        "THEN concat_ws(chr(10), nullif(m.content, ''), parts.text) END AS text "
        f"FROM (SELECT seen.is_read, seen.is_read AND {TOKENS.format(m='m')} > {budget} "
        f"AS is_over, CAST({CHARACTERS} * {budget} AS int4) AS ends "
        "FROM (SELECT m.role <> 'tool' OR m.sequence_no "
        ">= least(newest.held_from, step.sequence_no) AS is_read) AS seen) AS form "
        f"CROSS JOIN LATERAL ({of_parts}) AS parts) AS whole OFFSET 0"
    )


def waiting_calls(*, tenant: str, session: str) -> str:
    """An array of the ids of calls in the window that wait for an approval."""
    return f"ARRAY(SELECT a.tool_call_id FROM approvals AS a WHERE {_waits(tenant, session)})"


def _newest_numbers(tenant: str, session: str, budget: str, held: str) -> str:
    """One row: the `numbers` of the newest messages, the first of them, and from which on results
    and parts are read.
    """
    most = f"greatest({budget}, 0) / {OVERHEAD} + 1"
    newest = (
        f"SELECT m.sequence_no, {TOKENS.format(m='m')} AS tokens, m.role = 'tool' AS is_result, "
        f"{_TEXT_BYTES} AS bytes, {_PARTS} AS parts FROM messages AS m "
        f"WHERE {_inside(tenant, session)} ORDER BY m.sequence_no DESC LIMIT {most}"
    )
    least = f"CASE WHEN newest.is_result THEN least(newest.tokens, {RESULT}) ELSE newest.tokens END"
    order = "OVER (ORDER BY newest.sequence_no DESC)"
    counted = (
        f"SELECT newest.*, sum(newest.tokens) {order} - newest.tokens AS newer, "
        f"sum({least}) {order} - {least} AS newer_at_least "
        f"FROM {_stretches(session)} CROSS JOIN LATERAL ({newest}) AS newest "
        f"ORDER BY newest.sequence_no DESC LIMIT {most}"
    )
    read = f"CASE WHEN newest.is_result AND newest.newer > {held} THEN 0 ELSE newest.bytes END"
    whole = f"({read} + newest.parts)"
    return (
        "SELECT coalesce(array_agg(CAST(sized.sequence_no AS int8)), '{}') AS numbers, "
        "min(sized.sequence_no) AS unbroken_from, "
        f"min(sized.sequence_no) FILTER (WHERE sized.newer <= {held}) AS held_from, "
        f"min(sized.sequence_no) FILTER (WHERE sized.with_parts <= {MOST_BYTES}) AS parts_from "
        f"FROM (SELECT newest.*, sum({read}) {order} - {read} AS before, "
        f"sum({whole}) {order} - {whole} AS with_parts "
        f"FROM ({counted}) AS newest) AS sized "
        f"WHERE sized.newer_at_least <= {budget} AND sized.before <= {MOST_BYTES}"
    )


def _step(tenant: str, session: str) -> str:
    """The newest call of the current turn."""
    return (
        f"SELECT m.sequence_no FROM messages AS m WHERE m.tenant_id = {tenant} "
        f"AND m.session_id = {session}.session_id AND {CALLS} AND m.sequence_no "
        f"> greatest({session}.last_user_seq, {session}.in_context_from) "
        f"AND NOT m.sequence_no <@ {session}.set_aside ORDER BY m.sequence_no DESC LIMIT 1"
    )


def _step_numbers(tenant: str, session: str) -> str:
    """That call, and its results."""
    return (
        f"SELECT m.sequence_no FROM messages AS m WHERE m.tenant_id = {tenant} "
        f"AND m.session_id = {session}.session_id "
        f"AND m.sequence_no BETWEEN step.sequence_no AND step.sequence_no + {RESULTS_BEHIND} "
        "AND (m.sequence_no = step.sequence_no OR m.tool_call_id IS NOT NULL) "
        f"AND NOT m.sequence_no <@ {session}.set_aside"
    )


def _first_numbers(tenant: str, session: str) -> str:
    """The window's first message and, where it calls, its results: one for each call."""
    of_stretch = (
        f"SELECT m.sequence_no, m.tool_calls FROM messages AS m WHERE {_inside(tenant, session)} "
        "ORDER BY m.sequence_no LIMIT 1"
    )
    first = (
        f"SELECT of_stretch.* FROM {_stretches(session)} "
        f"CROSS JOIN LATERAL ({of_stretch}) AS of_stretch ORDER BY of_stretch.sequence_no LIMIT 1"
    )
    # Rows of older releases may hold anything here.
    calls = (
        "jsonb_array_elements(CASE WHEN jsonb_typeof(first.tool_calls) = 'array' "
        "THEN first.tool_calls END) AS call"
    )
    result = (
        f"SELECT m.sequence_no FROM messages AS m WHERE m.tenant_id = {tenant} "
        f"AND m.session_id = {session}.session_id AND m.tool_call_id = call ->> 'id' "
        f"AND m.sequence_no > first.sequence_no AND NOT m.sequence_no <@ {session}.set_aside "
        "ORDER BY m.sequence_no LIMIT 1"
    )
    return (
        f"SELECT unnest(first.sequence_no || ARRAY(SELECT result.sequence_no FROM {calls} "
        f"CROSS JOIN LATERAL ({result}) AS result)) FROM ({first}) AS first"
    )


def _waits(tenant: str, session: str) -> str:
    return (
        f"a.tenant_id = {tenant} AND a.session_id = {session}.session_id "
        "AND a.status = 'pending' AND (a.expires_at IS NULL OR a.expires_at > now()) "
        f"AND a.sequence_no > {session}.in_context_from "
        f"AND NOT a.sequence_no <@ {session}.set_aside"
    )


def _waiting_numbers(tenant: str, session: str) -> str:
    """Calls that wait, with their results, and the request before each."""
    own = (
        f"m.tenant_id = {tenant} AND m.session_id = {session}.session_id "
        f"AND NOT m.sequence_no <@ {session}.set_aside"
    )
    # A fence: the planner cannot know that approvals are few, and could read the whole session.
    near = (
        f"SELECT m.sequence_no FROM messages AS m WHERE {own} "
        f"AND m.sequence_no BETWEEN a.sequence_no AND a.sequence_no + {RESULTS_BEHIND} "
        "AND (m.sequence_no = a.sequence_no OR m.tool_call_id IS NOT NULL) OFFSET 0"
    )
    request = (
        f"SELECT m.sequence_no FROM messages AS m WHERE {own} AND m.role = 'user' "
        f"AND m.sequence_no > {session}.in_context_from AND m.sequence_no < a.sequence_no "
        "ORDER BY m.sequence_no DESC LIMIT 1"
    )
    return (
        "SELECT m.sequence_no FROM approvals AS a "
        f"CROSS JOIN LATERAL (({near}) UNION ALL ({request})) AS m WHERE {_waits(tenant, session)}"
    )


def _instruction_numbers(tenant: str, session: str, most: str, where: str = "true") -> str:
    newest = (
        f"SELECT m.sequence_no, {TOKENS.format(m='m')} AS tokens FROM messages AS m "
        f"WHERE m.tenant_id = {tenant} AND m.session_id = {session}.session_id AND {INSTRUCTS} "
        f"AND NOT m.sequence_no <@ {session}.set_aside AND {where} "
        f"ORDER BY m.sequence_no DESC LIMIT greatest({most}, 0) / {OVERHEAD} + 1"
    )
    return (
        "SELECT counted.sequence_no FROM (SELECT newest.sequence_no, "
        "sum(newest.tokens) OVER (ORDER BY newest.sequence_no DESC) AS taken "
        f"FROM ({newest}) AS newest) AS counted WHERE counted.taken <= {most}"
    )


def recount(*, tenant: str, session: str, instructions: str) -> str:
    """One row: `tokens` and `messages` of the window, `asked`, the number of the current request,
    and `opening`, that of the request of the turn that the window begins inside of; 0 for none.

    The opening and instructions from before the window count among the tokens, as they are shown.
    """
    own = f"m.tenant_id = {tenant} AND m.session_id = {session}.session_id"
    tokens = TOKENS.format(m="m")
    # Of those before alone, or an instruction in the window would change their number.
    older = f"m.sequence_no <= {session}.in_context_from"
    carried = _instruction_numbers(tenant, session, instructions, older)
    before = (
        f"SELECT coalesce(sum({tokens}), 0) FROM messages AS m "
        f"WHERE {own} AND m.sequence_no IN ({carried})"
    )
    window = (
        f"SELECT coalesce(sum({tokens}), 0) AS tokens, count(*) AS messages, "
        "max(m.sequence_no) FILTER (WHERE m.role = 'user') AS asked, "
        "min(m.sequence_no) FILTER (WHERE m.role = 'user') AS first_asked, "
        "min(m.sequence_no) FILTER (WHERE m.role NOT IN ('user', 'system')) AS first_answered "
        f"FROM {_stretches(session)} JOIN messages AS m ON {_inside(tenant, session)}"
    )
    # Read backwards through one turn, unless nobody has ever asked in this session.
    opening = (
        f"SELECT m.sequence_no, {tokens} AS tokens FROM messages AS m WHERE {own} AND {older} "
        f"AND m.role = 'user' AND NOT m.sequence_no <@ {session}.set_aside "
        "AND counted.first_answered < coalesce(counted.first_asked, counted.first_answered + 1) "
        "ORDER BY m.sequence_no DESC LIMIT 1"
    )
    return (
        f"SELECT CAST(counted.tokens + ({before}) + coalesce(opening.tokens, 0) AS int8) AS tokens,"
        " counted.messages, coalesce(counted.asked, opening.sequence_no, 0) AS asked, "
        "coalesce(opening.sequence_no, 0) AS opening "
        f"FROM ({window}) AS counted LEFT JOIN LATERAL ({opening}) AS opening ON true"
    )
