"""Named features of an English clause that speak for or against its being worth remembering."""

from collections.abc import Iterator
from typing import Final

from app.language.keyless.attributes import attribute_of
from app.language.text.lazy_pattern import lazy_pattern

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_PEOPLE: Final = (
    "mother father mom mum dad parent parents brother brothers sister sisters sibling siblings son"
    " sons daughter daughters kid kids child children baby wife husband partner girlfriend"
    " boyfriend"
    " fiancé fiancée fiance fiancee spouse ex grandmother grandfather grandma grandpa grandparents"
    " grandson granddaughter aunt uncle cousin cousins niece nephew twin twins family"
    " friend friends"
    " roommate roommates flatmate flatmates neighbor neighbors neighbour neighbours colleague"
    " colleagues coworker coworkers boss manager mentor coach teacher professor advisor supervisor"
    " therapist doctor landlord team client clients dog dogs cat cats pet pets puppy kittens"
)

# Cues of single words.
_WORDS: Final = {
    "person": _PEOPLE,
    "i": "i i'm im i've ive we we're we've",
    "like": (
        "love like likes loves loved enjoy enjoys hate hates prefer prefers favourite"
        " favorite adore dislike rather into passionate allergic vegan vegetarian fond"
    ),
    "habit": "every usually always often daily weekly each most regularly sometimes twice never",
    "decision": "decided decision chose chosen picked settled opted agreed switched",
    "plan": (
        "gonna plan planning planned plans aim goal intend preparing scheduled deadline"
        " due want hope"
    ),
    "hedge": (
        "think guess maybe perhaps might probably suppose seem seems sound sounds could"
        " would should hopefully believe someday whatever"
    ),
    "feeling": (
        "excited worried nervous overwhelmed stressed happy glad proud grateful sorry scared"
        " frustrated confused anxious relieved struggling stuck appreciate feeling"
    ),
    "you": "you you're your you've yours u",
    "praise": (
        "awesome amazing great cool wonderful beautiful lovely fantastic incredible congrats"
        " congratulations perfect helpful inspiring"
    ),
    "bug": "error exception bug fail fails undefined null crash crashes throws 404",
    "hoping": "hoping hope wish definitely",
    "my": "my our mine",
}
# Cues of phrases, found in lower case anywhere.
_PHRASES: Final = {
    "date": lazy_pattern(
        rf"\b(?:{_MONTH} (?:\d{{1,2}}|\d{{4}})|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}"
        rf"|in {_MONTH}"
        rf"|(?:in|since|until) (?:19|20)\d\d|{_DAY}s?|\d{{1,2}}/\d{{1,2}}|\d{{4}}-\d\d-\d\d)\b"
    ),
    "when": lazy_pattern(
        r"\b(?:yesterday|tomorrow|tonight|ago|recently|just|since|when i was|at age"
        r"|for \w+ (?:years"
        r"|months|weeks|days)|(?:last|next|this) (?:\w+ )?(?:week|month|year|night|summer|winter"
        rf"|spring|fall|autumn|weekend|fri|sat|sun|{_DAY}))\b"
    ),
    "number": lazy_pattern(r"\d"),
    "measure": lazy_pattern(
        r"\b\d{1,2}:\d\d\b|\b\d{1,2} ?[ap]\.?m\b|[$€£¥]\s?\d|\b\d[\d,.]{0,20}k?\s?(?:dollars|euros?"
        r"|pounds|francs|usd|eur|chf|%|ms\b|km\b|kg\b|hours?\b|minutes?\b|words\b|years?\b|px\b)"
    ),
    "ended": lazy_pattern(
        r"\b(?:i|i'm|we|we're|my \w+) (?:no longer|\w+n't .*any ?more|not .*any ?more)\b"
    ),
    "puzzles": lazy_pattern(
        r"\b(?:trying|try|want|need|have|struggling|how) to (?:understand|know|calculate|solve"
        r"|debug|figure|verify|decide|determine|find|make sure|ensure|be sure|explain|write|ask"
        r"|configure)\b"
    ),
    "hearsay": lazy_pattern(r"\b(?:i|i've|we've) (?:heard|read|seen|saw|came across)\b|\bsays\b"),
    "hoping": lazy_pattern(r"\bkeep (?:an eye|in mind)\b"),
    "like": lazy_pattern(r"\b(?:fan of|can't stand)\b"),
    "likes_something": lazy_pattern(
        r"\b(?:i|we|user)(?: (?:really|also|absolutely|always|don't|do not|can't|never))*"
        r" (?:loves?|likes?|enjoys?|hates?|prefers?|adores?|dislikes?|stand|play|speak|drive|eat"
        r"|drink|use|own|know|teach|study|smoke) (?!(?:it|that|this|these|those|them|you|your|when"
        r"|how|the (?:idea|first|second|other|way|one)|to (?:see|say|know|go))\b)\w"
    ),
    "points": lazy_pattern(
        r"\b(?:it|that|this|these|those|one|ones|them|more|so|too|to|in|for|of|all|same|there|here)"
        r"[.!]*$"
    ),
    "this": lazy_pattern(
        r"\b(?:this|that|these|those|such)(?: \w+)? (?!time|year|month|week|morning|summer|autumn"
        r"|fall|winter|spring|i|i'm|i've|my|we|our|he|she|they|it|the|is|are|was|were|has|had)"
        r"[a-z]+"
    ),
    "no_object": lazy_pattern(
        r"\b(?:i|we)(?:'ve|'m| have| need to| had to| want to| also| just| already)*"
        r" (?:\w+ed|\w+ing|decide|finish|start|submit|complete|go|pay)"
        rf" (?:by|on|at|before|until|in|for) (?:{_MONTH}|{_DAY}|\d|then|the end)"
        rf"|\ban?(?: {_MONTH}[ \d]+)? deadline(?! (?:of|for|to)\b)"
    ),
    "verbless": lazy_pattern(
        r"^(?!.*(?:\b(?:is|are|was|were|be|been|has|have|had|do|does|did|will|would|can|could|got"
        r"|went|came|said|told|made|took|wants?|likes?|loves?|hates?|lives?|works?|needs?)\b"
        r"|'(?:s|m|re|ve|d|ll)\b|\b\w{2,}ed\b"
        r"|\b(?:i|we|you|he|she|they|it|who|that) (?!and\b)[a-z]))"
    ),
    "somebody": lazy_pattern(r"\b(?:he|she|him|her|his|they|them|their)\b"),
    "mood": lazy_pattern(
        r"\b(?:i'?m|i am|we're|feel(?:ing)?)(?: (?:so|very|really|just|not|a bit|still|all|super))*"
        r" (?:hungry|tired|bored|busy|late|done|back|ready|fine|good|ok|okay|here|sick|starving"
        r"|lost"
        r"|exhausted|serious|kidding|joking|free|in|on|off|out|looking|thinking|sure|right|wrong)\b"
    ),
    "habit": lazy_pattern(rf"\bon (?:weekdays|weekends|{_DAY}s)\b|\ban? (?:day|week|month|year)\b"),
    "decision": lazy_pattern(r"\b(?:going with|went with|leaning towards?)\b"),
    "plan": lazy_pattern(
        r"\b(?:going to|need to|have to|would like to|working on|looking to|by (?:the end|next))\b"
    ),
    "hedge": lazy_pattern(r"\b(?:feel like|some day)\b"),
    "feeling": lazy_pattern(r"\b(?:having (?:some )?(?:trouble|issues)|can't wait)\b"),
    "praise": lazy_pattern(r"\b(?:makes sense|good (?:idea|point|luck))\b"),
    "exercise": lazy_pattern(
        r"[=∩∪≈×√]|\bp\(|\b(?:exercise|problem \d|role ?play|homework)|^(?:in this|dear|claim)\b"
    ),
    "bug": lazy_pattern(r"\b(?:doesn't work|not working|stack ?trace)\b"),
    "asks_inside": lazy_pattern(
        r"\b(?:how to|whether|what to|if i should|help me|can you|could you|which one|wondering)\b"
        r"|\?"
    ),
}
# Cues of the first words, in lower case.
_OPENINGS: Final = {
    "opens_i": lazy_pattern(r"(?:i|i'?m|i'?ve|we|we're|we've)\b"),
    "standing_rule": lazy_pattern(
        r"(?:please )?(?:(?:always|never|from now on,?|whenever i|when i ask) (?!mind|again|a\b)"
        r"|don't (?:suggest|recommend|use|call|ever)|call me (?!later|back|when)|stop \w+ing )\w"
    ),
    "has_something": lazy_pattern(
        r"(?:i|we) (?:have|own) (?:an?|no|\d+|one|two|three|four|five|several) "
        r"(?!question|idea|minute|moment|problem|issue|doubt|feeling|point|suggestion|headache)\w"
    ),
    "favourite": lazy_pattern(r"(?:my|our) (?:all-time )?favou?rite \w+"),
    "third": lazy_pattern(r"(?:the )?user(?:'s)? (?:\w+s\b|\w+ (?:is|has)\b)"),
}
# Cues for which capitals matter.
_WRITTEN: Final = {
    "version": lazy_pattern(r"\b[A-Za-z.+#]{1,40} v?\d+(?:\.\d+)+\b|\b[A-Z][\w.]{1,40} v?\d+\b"),
    "name": lazy_pattern(r"(?<=[a-z,] )[A-Z][a-zà-ÿ]{2,}"),
    "title": lazy_pattern(r"[\"“'][A-Z][^\"”]{2,60}[\"”']"),
}
_FOR: Final = ("date", "when", "measure", "version", "name", "title", "my_person")
_SPEAKER: Final = {"i", "my", "third", "standing_rule"}
_WITH_CONCRETE: Final = ("opens_i",)
_WORD: Final = lazy_pattern(r"[a-zà-ÿ]+(?:'[a-z]+)?|404|…")


def _by_word() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, words in _WORDS.items():
        for word in words.split():
            found[word] = (*found.get(word, ()), name)
    return found


_BY_WORD: Final = _by_word()


def english_cues(words: str, before: str) -> dict[str, float]:
    """The cues of a clause that are there, each 1, and some that grow with it.

    Args:
        words: of the clause, with plain apostrophes.
        before: the turn before, or nothing.

    """
    lower = words.lower()
    said: list[str] = _WORD.findall(lower)
    cues = dict.fromkeys(_named(words, lower, said), 1.0)
    concrete = sum(each in cues for each in _FOR)
    cues["concrete"] = min(concrete, 4) / 2
    cues["length"] = min(len(said), 40) / 10
    if len(said) <= 3:
        cues["short"] = 1.0
    if not cues.keys() & _SPEAKER:
        cues["not_the_speaker"] = 1.0
    if concrete:
        for each in _WITH_CONCRETE:
            if each in cues:
                cues[f"{each}_concrete"] = min(concrete, 3) / 2
    if before.rstrip().endswith("?"):
        cues["answers"] = 1.0
    return cues


def _named(words: str, lower: str, said: list[str]) -> Iterator[str]:
    for place, word in enumerate(said):
        names = _BY_WORD.get(word, ())
        yield from names
        if "person" in names and {"my", "our"}.intersection(said[max(place - 3, 0) : place]):
            yield "my_person"
    yield from (name for name, pattern in _PHRASES.items() if pattern.search(lower))
    yield from (name for name, pattern in _OPENINGS.items() if pattern.match(lower))
    yield from (name for name, pattern in _WRITTEN.items() if pattern.search(words))
    if attribute_of(words):
        yield "attribute"
