"""How passages are read, in a database of its own."""

from datetime import UTC, datetime

import numpy as np
from sqlalchemy import text

from app.language.ranking.query import parse_query
from app.prompting.documents.search_sql import PassagePlan, features_statement
from app.runtime import open_runtime
from tests.support.api import execute
from tests.support.databases import migrated_database, served
from tests.support.plans import nodes, plan_of
from tests.support.tenants import make_tenant


async def test_folders_are_scanned_behind_their_index(postgres, settings) -> None:
    dsn = await migrated_database(postgres, "passages_plan")
    async with open_runtime(settings, served(dsn)) as runtime:
        tenant = await make_tenant(runtime)
        async with runtime.database.begin(tenant.tenant_id) as db:
            for statement in (
                "INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES (:t, 'a', 'a')",
                "INSERT INTO folders (tenant_id, folder_id, folder_name, scope, scope_id, agent_id)"
                " SELECT :t, 'f' || n, 'F', 'agent', 'a', 'a' FROM generate_series(1, 40) n",
                "INSERT INTO passages (tenant_id, passage_id, folder_id, content)"
                " SELECT :t, 'p' || n, 'f' || (n % 40 + 1), 'W.' FROM generate_series(1, 8000) n",
            ):
                await db.execute(text(statement), {"t": tenant.tenant_id})
    await execute(dsn, "ANALYZE passages, folders")
    asked = parse_query("How long do refunds take?", datetime.now(UTC))
    vector = np.zeros(256, np.float32)
    plan = PassagePlan(["f1", "f2"], {"m": vector}, asked.embedded({"m": np.ones((3, 256))}))
    statement, values, _ = features_statement(plan)
    found = await plan_of(dsn, tenant.tenant_id, statement, values)

    read = [one for one in nodes(found) if one.get("Relation Name") == "passages"]
    assert {one["Node Type"] for one in read} <= {
        "Index Scan", "Bitmap Heap Scan", "Index Only Scan"
    }  # fmt: skip
    # Twice: once counted, by the index alone, and once read.
    assert sum(one["Actual Rows"] * one["Actual Loops"] for one in read) == 800
