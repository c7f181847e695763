"""What a statement must look like so that a cluster could shard by the tenant.

Read with PostgreSQL's own parser. `tenant_gaps` names the tables that a statement reaches
without the tenant as a parameter, `clock_readings` the time functions in a statement that
changes rows.
"""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Final

from pglast import ast, parse_sql
from pglast.enums import A_Expr_Kind, BoolExprType, SetOperation, SQLValueFunctionOp
from pglast.stream import RawStream

CLOCKS: Final = frozenset(
    ("now", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "timeofday")
)
DATES: Final = frozenset(
    kind
    for kind in SQLValueFunctionOp
    if kind.name.startswith(("SVFOP_CURRENT_DATE", "SVFOP_LOCALTIME", "SVFOP_CURRENT_TIME"))
)

FRAME: Final = ("tenant", "id")
"""The tenant within a hot read: the frame of `Database.fetch` sets it and hands it on."""

_CHANGES = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt)


@cache
def parsed(text: str) -> tuple[ast.Node, ...]:
    """The statements in `text`, one by one."""
    return tuple(raw.stmt for raw in parse_sql(text))


def children(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes directly below `node`."""
    for name in node:
        yield from _nodes(getattr(node, name))


def _nodes(value: object) -> Iterator[ast.Node]:
    if isinstance(value, ast.Node):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _nodes(item)


def within(node: ast.Node) -> Iterator[ast.Node]:
    """`node` and everything below it."""
    yield node
    for child in children(node):
        yield from within(child)


def tables_in(statement: ast.Node) -> set[str]:
    """The tables that a statement names, and what it makes up under a name."""
    return {node.relname for node in within(statement) if isinstance(node, ast.RangeVar)}


def tenant_gaps(statement: ast.Node, owned: Collection[str]) -> list[str]:
    """Each reference to a tenants' table whose `tenant_id` is compared with no parameter.

    Args:
        owned: names of the tables whose rows belong to a tenant.

    """
    made = {node.ctename for node in within(statement) if isinstance(node, ast.CommonTableExpr)}
    tables = {*owned} - made
    gaps: list[str] = []
    for level in within(statement):
        if isinstance(level, ast.InsertStmt):
            gaps += _unnamed_rows(level, tables)
        elif isinstance(level, ast.SelectStmt | ast.UpdateStmt | ast.DeleteStmt):
            gaps += _unnamed_tables(level, tables)
    return gaps


def _unnamed_tables(level: ast.Node, owned: set[str]) -> Iterator[str]:
    sources, conditions = _sources(level)
    if any(_is_false(condition) for condition in conditions):
        # It reads nothing.
        return
    tables = [table for table in sources if table.relname in owned]
    named = {owner for condition in conditions for owner in _named(condition)}
    for table in tables:
        alias = table.alias.aliasname if table.alias else table.relname
        if alias not in named and not (len(tables) == 1 and "" in named):
            yield f"{table.relname} {alias}"


def _sources(level: ast.Node) -> tuple[list[ast.RangeVar], list[ast.Node]]:
    """The tables of one query level, and the conditions that all its rows meet."""
    conditions = list(_conjuncts(level.whereClause))
    tables: list[ast.RangeVar] = []
    if isinstance(level, ast.UpdateStmt | ast.DeleteStmt):
        tables.append(level.relation)
    clause = level.usingClause if isinstance(level, ast.DeleteStmt) else level.fromClause
    pending = list(clause or ())
    while pending:
        item = pending.pop()
        if isinstance(item, ast.RangeVar):
            tables.append(item)
        elif isinstance(item, ast.JoinExpr):
            pending += [item.larg, item.rarg]
            conditions += _conjuncts(item.quals)
    return tables, conditions


def _is_false(condition: ast.Node) -> bool:
    return isinstance(condition, ast.A_Const) and condition.val == ast.Boolean(boolval=False)


def _conjuncts(condition: ast.Node | None) -> Iterator[ast.Node]:
    if isinstance(condition, ast.BoolExpr) and condition.boolop == BoolExprType.AND_EXPR:
        for part in condition.args:
            yield from _conjuncts(part)
    elif condition is not None:
        yield condition


def _named(condition: ast.Node) -> Iterator[str]:
    """Aliases whose `tenant_id` the condition fixes; an empty one where none is written."""
    if not isinstance(condition, ast.A_Expr) or condition.kind != A_Expr_Kind.AEXPR_OP:
        return
    if condition.name[-1].sval != "=":
        return
    left, right = condition.lexpr, condition.rexpr
    pairs = [(left, right)]
    if isinstance(left, ast.RowExpr) and isinstance(right, ast.RowExpr):
        pairs = list(zip(left.args, right.args, strict=True))
    for one, another in pairs:
        for column, value in ((one, another), (another, one)):
            names = _column(column)
            if names and names[-1] == "tenant_id" and is_tenant(value):
                yield names[-2] if len(names) > 1 else ""


def _column(node: ast.Node | None) -> tuple[str, ...]:
    if not isinstance(node, ast.ColumnRef):
        return ()
    return tuple(part.sval for part in node.fields if isinstance(part, ast.String))


def is_tenant(value: ast.Node | None) -> bool:
    """Whether a value is fixed before the statement is planned."""
    if isinstance(value, ast.TypeCast):
        return is_tenant(value.arg)
    return isinstance(value, ast.ParamRef | ast.A_Const) or _column(value) == FRAME


def _unnamed_rows(insert: ast.InsertStmt, owned: set[str]) -> Iterator[str]:
    """Rows that are added under a tenant that no parameter names."""
    table = insert.relation.relname
    if table not in owned:
        return
    columns = [column.name for column in insert.cols or ()]
    if "tenant_id" not in columns:
        yield f"INSERT {table}"
        return
    place = columns.index("tenant_id")
    query = insert.selectStmt
    if query.valuesLists:
        values = [row[place] for row in query.valuesLists]
    elif query.op == SetOperation.SETOP_NONE:
        values = [query.targetList[place].val]
    else:
        values = [None]
    if not all(is_tenant(value) for value in values):
        yield f"INSERT {table}"


def clock_readings(statement: ast.Node) -> list[str]:
    """Time functions in a statement that changes rows, and in what it decides that by.

    The VALUES of an INSERT are left out, as defaults are: they are worked out once, before the
    row goes where it belongs.
    """
    if not any(isinstance(node, _CHANGES) for node in within(statement)):
        return []
    return [RawStream()(node) for node in _outside_values(statement) if _reads_clock(node)]


def _reads_clock(node: ast.Node) -> bool:
    if isinstance(node, ast.SQLValueFunction):
        return node.op in DATES
    return isinstance(node, ast.FuncCall) and node.funcname[-1].sval in CLOCKS


def _outside_values(node: ast.Node) -> Iterator[ast.Node]:
    yield node
    for child in children(node):
        if isinstance(node, ast.InsertStmt) and child is node.selectStmt and child.valuesLists:
            continue
        yield from _outside_values(child)


def sets_tenant(statement: ast.Node, setting: str) -> bool:
    """Whether a statement sets the tenant, for its transaction alone."""
    if isinstance(statement, ast.VariableSetStmt):
        return bool(statement.name == setting and statement.is_local)
    return any(_sets_locally(node) for node in within(statement))


def _sets_locally(node: ast.Node) -> bool:
    # The name is a parameter where SQLAlchemy writes the statement; nothing else is set.
    if not isinstance(node, ast.FuncCall) or node.funcname[-1].sval != "set_config":
        return False
    lasting = ast.Boolean(boolval=False)
    return not (isinstance(node.args[2], ast.A_Const) and node.args[2].val == lasting)


def is_framed(statement: ast.Node) -> bool:
    """Whether a statement sets its tenant itself, before anything that reads a table.

    The outer half of the join hands the tenant on, so that the inner half waits for it.
    """
    if not isinstance(statement, ast.SelectStmt) or len(statement.fromClause or ()) != 1:
        return False
    [join] = statement.fromClause
    if not isinstance(join, ast.JoinExpr) or not isinstance(join.rarg, ast.RangeSubselect):
        return False
    first, second = join.larg, join.rarg
    return bool(
        isinstance(first, ast.RangeSubselect)
        and first.alias.aliasname == FRAME[0]
        and sets_tenant(first.subquery, "")
        and not tables_in(first)
        and second.lateral
        and statement.whereClause is None
    )
