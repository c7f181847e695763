"""English put into the form the grammar reads, and from "I" into "the user"."""

import re
from typing import Final

from app.language.keyless import english_verbs as verbs
from app.language.keyless import english_words as words
from app.language.keyless.patterns import compiled
from app.language.text.lazy_pattern import lazy_pattern

_QUOTES: Final = str.maketrans({"’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "…": "."})
_EXPANSIONS: Final = tuple(
    (compiled(pattern), said)
    for pattern, said in (
        (r"\bi'?m(?= [^.,!?]|a )|\bi'm\b", "I am"),
        (r"\bi'?ve\b", "I have"),
        (r"\bi'd (?=been|had|gone|never|already)", "I had "),
        (r"\bi'd\b", "I would"),
        (r"\bi'll\b", "I will"),
        (r"\bwe're\b", "we are"),
        (r"\b(we|they|you)'?ve\b", r"\1 have"),
        (r"\bwe'd\b", "we would"),
        (r"\bwe'll\b", "we will"),
        (r"\b(you|they)'re\b", r"\1 are"),
        (r"\b(he|she|it|that|this|there|what|where|who|how)'s\b", r"\1 is"),
        (r"""
        \b(my|our) ((?:\w+ )?\w+)'s (?=(?:called|named|an?|the|from|in|at|allergic|\d)\b)
        """, r"\1 \2 is "),
        (r"""
        \b(
            name|birthday|bday|b-day|hometown|wedding|surname|postcode|major|employer|plan|
            dream|aim|deadline|limit|goal|budget|job|favou?rite \w+|favou?rite
        )'s\b(?! \w+ (?:is|was)\b)
        """, r"\1 is"),
        (r"\b(?:can't|cant|can not)\b", "cannot"),
        (r"\b(?:won't|wont)\b", "will not"),
        (r"\bshan't\b", "will not"),
        (r"\b(do|does|did|is|are|was|were|have|has|had|would|could|should|must)n'?t\b", r"\1 not"),
        (r"\bgonna\b", "going to"),
        (r"\bwanna\b", "want to"),
        (r"\b(?:have )?gotta\b", "have to"),
        (r"\bhave got to\b", "have to"),
        (r"""
        \b(have|has) got\b(?! (?:married|engaged|divorced|promoted|hired|into|rid|used))
        """, r"\1"),
        (r"\b(?:pls|plz)\b", "please"),
        (r"\b(?:cuz|coz|'cause|bc)\b", "because"),
        (r"\bu\b", "you"),
        (r"\bw (?=(?:the|a|my|an)\b)", "with "),
        (r"\b(love|like|hate|enjoy) (?=that|this)\b", r"\1 "),
    )
)  # fmt: skip


def plain(text: str) -> str:
    """One kind of quotes and spaces, and contractions in full."""
    text = text.translate(_QUOTES)
    for pattern, said in _EXPANSIONS:
        text = pattern.sub(said, text)
    return " ".join(text.split())


_ADVERB: Final = frozenset(words.ADVERBS.split("|")) | {"almost", "nearly"}
_TWO_WORDS: Final = frozenset(each for each in words.ADVERBS.split("|") if " " in each) - {
    "tend to"
}
_IRREGULAR: Final = {
    "am": "is", "have": "has", "do": "does", "was": "was", "were": "was", "are": "is", "go": "goes",
    "had": "had", "did": "did", "get": "gets", "be": "be",
}  # fmt: skip
_MODALS: Final = frozenset(
    [
        "would",
        "will",
        "can",
        "cannot",
        "could",
        "must",
        "should",
        "may",
        "might",
        "used",
        "going",
        "planning",
        "allergic",
        "shall",
    ]
)
_COMMON_VERBS: Final = frozenset(
    verb.split()[0]
    for group in (words.LIKING, verbs.HABIT_VERBS, verbs.SKILL_VERBS)
    for verb in re.sub(r"\([^()]*\)", "", group).split("|")
    if verb.split() and verb.split()[0].isalpha()
) | {"live", "work", "own", "want", "need", "plan", "know", "teach", "lead", "manage"} - {"am"}
_AFTER_AND: Final = compiled(
    rf"(\b(?:and|but|or|then) (?:(?:{words.ADVERBS}) ){{0,2}})({'|'.join(sorted(_COMMON_VERBS))})\b"
)
_NOUNS_TOO: Final = frozenset(
    ["drink", "play", "run", "walk", "work", "love", "like", "hate", "swim", "dance", "paint",
     "cook", "cooks", "watch", "train", "code", "draw", "rock", "read", "travel", "exercise",
     "sleep", "sport", "ride", "ski", "fish", "hunt", "camp", "study", "practice", "visit",
     "call", "order", "shop", "garden", "start", "box", "row", "surf", "help"]
)  # fmt: skip


def _third(verb: str) -> str:
    low = verb.casefold()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low in _MODALS or low in verbs.PAST_IRREGULAR or (low.endswith("ed") and low != "need"):
        return verb
    if low.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


_PRONOUNS: Final = tuple(
    (compiled(pattern), said)
    for pattern, said in (
        (r"\b(?:i|we) am\b|\bwe are\b", "they are"),
        (r"\b(?:i|we) was\b", "they were"),
        (r"\bmyself\b|\bourselves\b", "themselves"),
        (r"\bmine\b|\bours\b", "theirs"),
        (r"\b(?:my|our)\b", "their"),
        (r"(?<![\w.])(?:i|we)(?= [a-z'])|(?<![\w.])(?:i|we)$", "they"),
        (r"(?<![\w./])(?:me|us)(?![\w/])", "them"),
        (r"\byour\b", "the assistant's"),
        (r"\byou are\b", "the assistant is"),
        (r"\byou\b", "the assistant"),
    )
)  # fmt: skip
_US: Final = lazy_pattern(r"\bUS\b")


_YOU_DO: Final = compiled(
    r"""
    \b(when|if|that|whenever) you (
        give|use|draft|write|explain|answer|reply|show|add|include|send|make|keep|talk|speak|
        suggest|ask|call|format|start|list|cite|summari[sz]e
    )\b
    """
)


def others(text: str) -> str:
    """Everybody who speaks or is spoken to, from the first and second person into the third."""
    text = _US.sub("U.S.", text)
    text = _YOU_DO.sub(lambda match: f"{match[1]} the assistant {_third(match[2])}", text)
    for pattern, said in _PRONOUNS:
        text = pattern.sub(said, text)
    return text


def predicate(text: str) -> str:
    """What follows "I", as it follows "The user"."""
    done: list[str] = []
    rest = text.split(" ")
    while len(rest) > 2 and f"{rest[0]} {rest[1]}".casefold() in _TWO_WORDS:
        done += [rest.pop(0), rest.pop(0)]
    while len(rest) > 1 and (
        rest[0].casefold().rstrip(",") in _ADVERB or rest[0].casefold().endswith("ly")
    ):
        if rest[0].casefold() in {"do", "tend"}:
            break
        done.append(rest.pop(0))
    head = rest[0]
    verb = _third(head)
    tail = " ".join(rest[1:])
    if verb != head or head.casefold() in _COMMON_VERBS:
        tail = _AFTER_AND.sub(_second_verb, f" {tail}").strip()
    return others(" ".join((*done, verb, tail)).strip())


def _second_verb(match: re.Match[str]) -> str:
    if match[2].casefold() in _NOUNS_TOO and match[1].split()[0].casefold() == "or":
        return match[0]
    after = match.string[match.end() : match.end() + 1]
    # "Tea and drinks": a noun as often as a verb, so it must have something after it.
    if match[2].casefold() in _NOUNS_TOO and after != " ":
        return match[0]
    return match[1] + _third(match[2])


def sentence(text: str) -> str:
    """Trim, begin with a capital, end with a full stop."""
    text = " ".join(text.split()).strip(" ,;:-")
    if not text:
        return ""
    if not text.endswith((".", "!", "?", '."')):
        text += "."
    text = text.rstrip("!.") + "."
    return text[0].upper() + text[1:]


def owned(said: str) -> str:
    """Say "my" and "our" as "the user's" where the sentence begins with it, else as "their"."""
    first = re.match(r"(?:my|our) ", said, re.IGNORECASE)
    return "the user's " + others(said[first.end() :]) if first else others(said)
