"""`memory.graph`: the requests it makes, what it reads, and all of it against the service."""

from datetime import UTC, datetime

import pytest

from kemem import AsyncMemory, ConflictError, NotFoundError, UnprocessableError

MAY = datetime(2026, 5, 1, tzinfo=UTC)

APRIL = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
async def memory_of_acme(memory_of_acme: AsyncMemory) -> AsyncMemory:
    """With a user ana and one memory of hers."""
    await memory_of_acme.add("Li Ming studies in Beijing.", user_id="ana", infer=False)
    return memory_of_acme


async def test_relation_is_added_corrected_and_deleted(memory_of_acme: AsyncMemory) -> None:
    ours = memory_of_acme.graph
    [memory] = await memory_of_acme.get_all("ana")
    bonn = await ours.add_relation(
        "Ana", "lives in", "Bonn", user_id="ana", source_type="person", valid_from=APRIL,
        memory_ids=[memory.memory_id],
    )  # fmt: skip
    assert (bonn.relation, bonn.source.entity_type, bonn.valid_from) == (
        "lives_in",
        "person",
        APRIL,
    )
    assert str(bonn) == "Ana lives_in Bonn"
    assert await ours.mentions(bonn.source.entity_id) == (memory.memory_id,)
    assert (await ours.entity(bonn.source.entity_id)).mentions == 1

    koeln = await ours.add_relation("Ana", "lives_in", "Köln", user_id="ana", valid_from=MAY,
                                    single=True)  # fmt: skip
    assert [str(one) for one in await ours.relations()] == ["Ana lives_in Köln"]
    assert [str(one) for one in await ours.relations(as_of=APRIL)] == ["Ana lives_in Bonn"]
    assert len(await ours.relations(None, include_closed=True)) == 2

    with pytest.raises(ConflictError) as stale:
        await ours.update_relation(koeln.relation_id, version=9, confidence=0.5)
    assert stale.value.code == "version_conflict"
    mainz = await ours.update_relation(
        koeln.relation_id, version=1, destination="Mainz", reason="misheard"
    )
    assert (mainz.version, mainz.reason, str(mainz)) == (2, "misheard", "Ana lives_in Mainz")
    with pytest.raises(ConflictError):
        await ours.delete_relation(koeln.relation_id, version=1)
    assert await ours.delete_relation(koeln.relation_id, version=2) is None
    with pytest.raises(NotFoundError):
        await ours.update_relation(koeln.relation_id, confidence=0.5)
    known = await ours.history(koeln.relation_id)
    assert [one.destination.name for one in known] == ["Mainz", "Köln"]
    with pytest.raises(UnprocessableError):
        await ours.add_relation("李明", "就读于", "北京大学", user_id="ana")


async def test_graph_returns_neighbours_paths_and_hits(
    memory_of_acme: AsyncMemory,
) -> None:
    ours = memory_of_acme.graph
    for relation in (("李明", "studies_at", "北京大学"), ("北京大学", "located_in", "北京")):
        await ours.add_relation(*relation, user_id="ana")
    ids = {one.name: one.entity_id for one in await ours.entities(user_id="ana")}

    near = await ours.neighbours("李明", depth=2, user_id="ana")
    assert [(one.name, one.hops) for one in near.entities] == [
        ("李明", 0), ("北京大学", 1), ("北京", 2),
    ]  # fmt: skip
    assert set(str(near).splitlines()) == {"李明 studies_at 北京大学", "北京大学 located_in 北京"}
    assert near.truncated is False
    alone = await ours.neighbours(entity_id=ids["李明"], relation="located_in")
    assert [one.name for one in alone.entities] == ["李明"]

    found = await ours.paths(ids["李明"], ids["北京"])
    assert str(found) == "李明 studies_at 北京大学, 北京大学 located_in 北京"
    assert [one.name for one in found.paths[0].entities] == ["李明", "北京大学", "北京"]
    told = await ours.search("李明在哪里读书？", user_id="ana")
    assert (
        [one.name for one in told.entities], [str(one) for one in told.relations],
    ) == (["李明"], ["李明 studies_at 北京大学"])  # fmt: skip


async def test_entities_are_renamed_merged_split_and_undone(memory_of_acme: AsyncMemory) -> None:
    ours = memory_of_acme.graph
    one = await ours.add_relation("Li Ming", "likes", "tea", user_id="ana")
    two = await ours.add_relation("李明", "likes", "rice", user_id="ana")
    kept, gone = one.source.entity_id, two.source.entity_id

    named = await ours.update_entity(kept, version=1, name="Ming Li", entity_type="person")
    assert (named.name, named.aliases, named.version) == ("Ming Li", ("Li Ming",), 2)
    assert "M. L." in (await ours.add_alias(kept, "M. L.")).aliases
    assert await ours.remove_alias(kept, "M. L.") is None
    assert [entity.name for entity in await ours.entities("li ming")] == ["Ming Li"]

    counted = await ours.merge(kept, [gone], dry_run=True)
    assert (counted.change_id, counted.dry_run) == (None, True)
    merged = await ours.merge(kept, [gone], reason="one person")
    assert (merged.event, merged.entity_ids, merged.reason) == ("MERGE", (kept, gone), "one person")
    assert (await ours.entity(gone)).merged_into == kept
    assert len(await ours.relations(source_id=kept)) == 2
    assert (await ours.undo(str(merged.change_id))).undone_at is not None
    with pytest.raises(ConflictError) as again:
        await ours.undo(str(merged.change_id))
    assert again.value.code == "change_undone"

    parted = await ours.split(kept, "Li Ming (Bonn)", relation_ids=[one.relation_id])
    assert parted.event == "SPLIT"
    assert [change.event for change in await ours.changes()] == ["SPLIT", "MERGE"]
    [moved] = await ours.relations(entity_id=parted.entity_ids[1])
    assert str(moved) == "Li Ming (Bonn) likes tea"
