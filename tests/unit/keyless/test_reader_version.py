"""The reader's version follows what it reads: `kemem reread` finds what an older one made by it."""

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from app.language.keyless.classifier import WEIGHTS
from app.language.keyless.extractor import READER, RulesExtractor, propose
from app.language.llm.extractor import ConversationTurn, ExtractionRequest
from tests.support.source import ROOT

SAID = datetime(2026, 3, 14, tzinfo=UTC)
LABELLED = ROOT / "benchmarks" / "extraction_set"

FINGERPRINTS = {"rules/5": "b2bdb34e4081ed71"}
"""What the weights are and what is read of the labelled lines, by version. If this changes, raise
`READER` and put the new line here: memories that the version before made are found by its name."""


def weights() -> list[bytes]:
    return [path.read_bytes() for path in sorted(Path(WEIGHTS).glob("*.npz"))]


def read() -> list[tuple[str, str, str | None, bool]]:
    found = []
    for path in sorted(LABELLED.glob("*_held_out.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            turns = tuple(
                ConversationTurn(f"msg_{at}", turn["role"], turn["content"], SAID)
                for at, turn in enumerate(json.loads(line)["turns"])
            )
            found += [
                (each.content, each.memory_type, each.attribute, each.retracts)
                for each in propose(ExtractionRequest(turns))
            ]
    return found


def test_reader_that_reads_otherwise_has_another_version() -> None:
    told = sha256(repr(read()).encode())
    for each in weights():
        told.update(each)

    assert {READER: told.hexdigest()[:16]} == FINGERPRINTS


def test_extractor_bears_the_version() -> None:
    assert RulesExtractor().name == READER
    assert len(read()) > 100
