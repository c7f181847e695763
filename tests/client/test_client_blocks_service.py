"""`memory.blocks`: the requests it makes, and what it does against the whole service."""

import pytest

from kemem import AsyncMemory, ConflictError, NotFoundError, UnprocessableError


async def test_block_is_created_changed_undone_and_deleted(memory_of_acme: AsyncMemory) -> None:
    memory = memory_of_acme
    await memory.append("s1", "Hello.", user_id="ana", agent_id="helper")
    blocks = memory.blocks

    made = await blocks.create("pets", "A cat.", 40, agent_id="helper", tags=["home"])
    assert (made.chars_current, made.limit, made.tags) == (6, 40, ("home",))
    assert [one.label for one in await blocks.attached("helper")] == ["pets"]

    grown = await blocks.append(made.block_id, "A dog.", version=made.version)
    assert grown.value == "A cat.\nA dog."
    with pytest.raises(ConflictError) as stale:
        await blocks.rewrite(made.block_id, "None.", version=made.version)
    assert stale.value.code == "version_conflict"
    with pytest.raises(UnprocessableError) as long:
        await blocks.append(made.block_id, "x" * 40)
    assert long.value.code == "block_limit_exceeded"

    back = await blocks.undo(made.block_id, version=grown.version)
    assert back.value == "A cat."
    assert (await blocks.redo(made.block_id, version=back.version)).value == grown.value
    assert [one.event for one in await blocks.history(made.block_id)] == ["append", "create"]

    renamed = await blocks.update(made.block_id, version="*", label="animals")
    assert (renamed.label, renamed.limit) == ("animals", 40)
    assert [one.block_id for one in await blocks.list_blocks(label="animals")] == [made.block_id]
    assert (await blocks.delete(made.block_id)).agents == 1
    with pytest.raises(NotFoundError):
        await blocks.get(made.block_id)
