"""Facts marked in messages that nobody here wrote, kept by their places: no text is copied.

A line of `unseen_labels/SET_HALF.jsonl` names a message of a public data set (`set`,
`conversation`, `message`) and `facts`, each with the places of its characters in the text.
`python -m benchmarks.unseen_labels MARKED OUT` makes such a file of lines that hold quotes.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

LABELS: Final = Path(__file__).parent / "unseen_labels"
LANGUAGES: Final = {"beam": "english", "locomo": "english", "madial_zh": "chinese"}
Texts = Mapping[tuple[str, str], tuple[str | None, str]]
"""The turn before and the text of a message, by its conversation and id."""


@dataclass(frozen=True, slots=True)
class Marked:
    """One message: what was said before it, its text, and the quotes that state a fact.

    Two people talk if `among_people`, else a user and an assistant.
    """

    before: str | None
    text: str
    quotes: tuple[str, ...]
    among_people: bool


def read_marked(path: Path, texts: Texts) -> list[Marked]:
    """Messages of a file of labels. Raises KeyError for one that the data set does not have."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        before, text = texts[row["conversation"], row["message"]]
        quotes = tuple(text[each["start"] : each["end"]] for each in row["facts"])
        found.append(Marked(before, text, quotes, row["set"] == "locomo"))
    return found


def texts_of(name: str, data: Path) -> Texts:
    """The messages of a data set in the folder of data sets."""
    readers = {"beam": _beam, "locomo": _locomo, "madial_zh": _madial}
    return dict(readers[name](data))


Text = tuple[tuple[str, str], tuple[str | None, str]]


def _beam(data: Path) -> Iterator[Text]:
    for store in _json(data / "beam" / "beam100k_dev.json")["stores"]:
        before: str | None = None
        for unit in store["units"]:
            yield (store["id"], unit["id"]), (before, unit["text"])
            before = unit["text"]


def _locomo(data: Path) -> Iterator[Text]:
    for number, one in enumerate(_json(data / "locomo" / "locomo10.json")):
        for name, turns in one["conversation"].items():
            if re.fullmatch(r"session_\d+", name) and isinstance(turns, list):
                before: str | None = None
                for turn in turns:
                    key = one.get("sample_id", str(number)), turn["dia_id"]
                    yield key, (before, turn["text"])
                    before = f"{turn['speaker']}: {turn['text']}"


def _madial(data: Path) -> Iterator[Text]:
    # A dialogue is one text: <Name>: words.
    line = re.compile(r"<([^>]+)>[:：]\s*\"?(.*?)\"?\s*(?=\n<|\Z)", re.DOTALL)
    for store in _json(data / "madial" / "madial_zh.json")["stores"]:
        for question in store["questions"]:
            before: str | None = None
            for place, (_, said) in enumerate(line.findall(question["question"])):
                text = said.strip().strip('"')
                yield (store["id"], f"{question['qid']}:{place}"), (before, text)
                before = said.strip('"\n ')


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def referred(row: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A line with quotes as one with places. Raises ValueError for a quote that is not in it."""
    facts = []
    for each in row["facts"]:
        start = text.index(each["quote"])
        kept = {key: each[key] for key in ("kind", "date", "attribute") if each.get(key)}
        facts.append({"start": start, "end": start + len(each["quote"]), **kept})
    named = {key: row[key] for key in ("set", "half", "conversation", "message")}
    return {**named, "facts": facts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("marked", type=Path, help="lines with quotes")
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.marked.read_text(encoding="utf-8").splitlines()]
    texts = texts_of(rows[0]["set"], given.data)
    with given.out.open("w", encoding="utf-8") as out:
        for row in rows:
            _, text = texts[row["conversation"], row["message"]]
            out.write(json.dumps(referred(row, text), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
