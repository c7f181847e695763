"""Who and what a stored sentence joins, as triples for the graph, in English and Chinese.

Reads sentences in the third person, however they came to be stored, as `attributes` does. A
name is taken as it is written, and where it is not plain who or what it names there is none:
silence is cheaper than a wrong neighbour.
"""

from typing import Final

from app.language.keyless.relations_chinese import chinese_relations
from app.language.keyless.relations_english import english_relations
from app.language.llm.extractor import MOST_RELATIONS, ProposedRelation
from app.language.text.normal_forms import has_cjk

LONGEST: Final = 300


def relations_of(content: str, *, retracts: bool = False) -> tuple[ProposedRelation, ...]:
    """The triples of a sentence, each once, in its order; nothing of one that denies or wishes.

    Args:
        retracts: it says that something holds no longer, and the triples are what does not.

    """
    text = " ".join(content.split())
    if not text or len(text) > LONGEST:
        return ()
    read = chinese_relations if has_cjk(text) else english_relations
    found = read(text, retracts=retracts)
    return tuple(dict.fromkeys(found))[:MOST_RELATIONS]
