"""`memory.folders.search`: what an answer of the service says of itself."""

import dataclasses

import kemem
from app.prompting.documents.schemas import PassageHits
from tests.support.either_client import ask
from tests.support.flaky_server import says

ANSWER = {
    "items": [{"passage_id": "psg_1", "folder_id": "f", "content": "Bees.", "score": 0.9}],
    "embedding_models": ["wordllama"], "waiting": 2, "searched": 5000, "left_out": True,
    "degraded": False, "mode": "hybrid",
}  # fmt: skip


def test_answer_type_has_the_fields_of_the_service() -> None:
    fields = {one.name for one in dataclasses.fields(kemem.Passages)} - {"raw"}

    assert fields == {"results" if one == "items" else one for one in PassageHits.model_fields}


async def test_search_says_that_older_passages_were_left_out(server, memory) -> None:
    server.otherwise = says(ANSWER)

    found = await ask(memory.folders.search, "bees", user_id="ana")

    assert (found.left_out, found.waiting, found.searched) == (True, 2, 5000)
    assert (found.embedding_models, found[0].content) == (("wordllama",), "Bees.")


async def test_left_out_is_false_for_an_older_service(server, memory) -> None:
    server.otherwise = says({"items": [], "degraded": True})

    found = await ask(memory.folders.search, "bees", user_id="ana")

    assert (found.left_out, found.degraded) == (False, True)
