"""What a word or two say after the assistant's question: "Where do you live?" - "Munich"."""

import re
from collections.abc import Sequence
from typing import Final

from app.language.keyless import english
from app.language.keyless.english_forms import plain
from app.language.keyless.patterns import compiled
from app.language.keyless.statements import CONFIRMED, Statement

_MOST_WORDS: Final = 12
# Answers that are none, and those that are whole sentences and speak for themselves.
_NO_ANSWER: Final = compiled(
    r"""
    (?:
        i|we|my|our|it|that|this|they|he|she|why|what|how|when|where|who|none|nothing|nobody|
        never mind|not|dunno|idk|no idea|maybe|perhaps|depends|guess|hmm+|skip|pass|secret|
        rather|whatever|anything|any|all|both|neither|either|thanks|thank|please|sorry|ok|
        okay|sure|can|could|should|let|forget|you|yes|yeah|yep|yup|no|nope|nah
    )\b
    """
)
_LEAD_IN: Final = compiled(
    r"""
    ^(?:
        (?:
            oh|um|uh|well|so|just|mostly|mainly|only|currently|probably|roughly|around|about|
            at the moment|these days|originally|definitely|obviously|easy|good question|
            that would be|it is|in|at|from|for|on|yes|yeah
        )[,:]?[ ]
    )+
    """
)
_YES: Final = compiled(r"(?:yes|yeah|yep|yup|sure|i do|i am|i have)\b[,.!]* ?")
_NO: Final = compiled(r"(?:no|nope|nah|not really|i do not|never)[.!]*$")
# A question and the sentence that its answer completes; {} is the answer.
_QUESTIONS: Final = tuple(
    (compiled(question), answer)
    for question, answer in (
        (
            r".*\b(?:what is your|may i (?:have|ask) your|your) (?:full |first |last )?name\b",
            "my name is {}",
        ),
        (r".*\b(?:what|how) (?:should|can|shall|may|do) i (?:call|address) you\b", "call me {}"),
        (r".*\bwho am i (?:speaking|talking|chatting) (?:to|with)\b", "my name is {}"),
        (r".*\bhow old are you\b|.*\bwhat is your age\b", "I am {} years old"),
        (
            r"""
            .*\bwhere (?:
                do you (?:currently |now )?live|
                are you (?:currently |now )?(?:based|living|located)
            )\b|
            .*\b(?:what|which) (?:city|town|country|place)[ ]
            (?:do you live|are you (?:based|living|located)) in\b|
            .*\b(?:what|which) (?:city|town|country|place) are you in\b
            """,
            "I live in {}",
        ),
        (
            r"""
            .*\bwhere (?:are|do) you (?:originally )?(?:come )?from\b|
            .*\bwhere did you grow up\b
            """,
            "I am from {}",
        ),
        (
            r".*\b(?:where|who|which company|what company) do you work(?: for| at)?\b"
            r"|.*\bwho is your employer\b|.*\bwhich company are you with\b",
            "I work at {}",
        ),
        (
            r".*\bwhat do you do (?:for a living|for work|professionally|exactly)?\s*$"
            r"|.*\bwhat is your (?:job|occupation|profession|line of work|role|job title)\b"
            r"|.*\bwhat kind of work do you do\b",
            "I work as {a}",
        ),
        (
            r".*\bwhat are you allergic to\b|.*\b(?:any|have) (?:food )?allerg(?:y|ies)\b",
            "I am allergic to {}",
        ),
        (
            r"""
            .*\bwhen is your (?:birthday|b-?day)\b|.*\byour date of birth\b|
            .*\bwhen were you born\b
            """,
            "my birthday is {}",
        ),
        (
            r".*\b(?:what is your|your|any) favou?rite (?P<what>[\w ]{2,30})$",
            "my favourite {what} is {}",
        ),
        (
            r"""
            .*\bwhat is your (?P<what>
                budget|time ?zone|native language|mother tongue|blood type|shoe size|hometown|
                nationality|hobby|goal|main goal|deadline|height|weight|diet|star sign|
                favou?rite [\w ]{2,20}
            )\b
            """,
            "my {what} is {}",
        ),
        (
            r".*\bhow much (?:can|do|would) you (?:want to |like to )?spend\b|.*\bany budget\b",
            "my budget is {}",
        ),
        (r".*\b(?:what|which) languages do you speak\b", "I speak {}"),
        (
            r"""
            .*\b(?:what|which) (?:programming )?languages do you[ ]
            (?:know|use|program in|code in)\b
            """,
            "I know {}",
        ),
        (
            r".*\b(?:what|which) (?:[\w ]{2,30} )?do you (?:usually |normally |currently )?use\b",
            "I use {}",
        ),
        (
            r".*\b(?:what|which|who|tea or).{0,40}\bdo you (?:prefer|like (?:best|most|better))\b",
            "I prefer {}",
        ),
        (r".*\bwhat (?:kind|sort|type) of [\w ]{2,25} do you (?:like|enjoy|love)\b", "I like {}"),
        (
            r"""
            .*\bwhat are your hobbies\b|.*\bwhat do you (?:like|enjoy) doing\b|
            .*\bin your (?:free|spare) time\b
            """,
            "I enjoy {}",
        ),
        (
            r"""
            .*\bhow many (?P<what>kids|children|dogs|cats|pets|siblings|brothers|sisters)
            [ ]do you have\b
            """,
            "I have {} {what}",
        ),
        (
            r"""
            .*\b(?:do you have|have you got|got) (?:any |a )?
            (?:kids|children|pets|siblings|dogs?|cats?)\b
            """,
            "I have {}",
        ),
        (
            r"""
            .*\b(?:what is|what are) your (?P<what>
                wife|husband|partner|son|daughter|dog|cat|sister|brother|baby|mother|father|
                puppy|kitten|boyfriend|girlfriend|horse|rabbit|parrot
            )'?s? (?:name|called)\b
            """,
            "my {what}'s name is {}",
        ),
        (r".*\bwhat is (?:his|her|its) name\b", "{pronoun} name is {}"),
        (r".*\bwhat (?:do|are) you (?:study(?:ing)?|majoring in)\b", "I study {}"),
        (r".*\bwhat instrument do you play\b", "I play the {}"),
        (r".*\bwhat (?:car|bike|motorcycle) do you (?:drive|ride|have|own)\b", "I drive {a}"),
        (
            r"""
            .*\b(?:when|what time) do you (?:usually |normally )?
            (?P<what>wake up|get up|go to bed|eat dinner|have lunch|start work)\b
            """,
            "I usually {what} at {}",
        ),
    )
)
# Answers that are names begin with a capital, and others lose theirs.
_KEEPS_CASE: Final = compiled(r"name|live in|am from|work at|speak|know|use|prefer|call|birthday")
_DO_YOU: Final = compiled(
    r"(?:so,? |and )?do you (?P<what>(?:eat|drink|smoke|drive|speak|like|own|play|use) ?[\w ]*)$"
)


def answered(question: str, text: str, person: str | None) -> tuple[list[Statement], str] | None:
    """What an answer says together with its question, and the rest of the turn; None if nothing."""
    asked = _last_question(question)
    first, rest = _first_sentence(plain(text))
    if asked is None or not first or first.endswith("?"):
        return None
    refused = _DO_YOU.match(asked)
    if refused and _NO.match(first):
        return _read([f"I do not {refused['what']}"], rest, person)
    yes = _YES.match(first)
    answer = _LEAD_IN.sub("", first[yes.end() :] if yes else first, count=1).strip(" .,!")
    if not answer or _NO_ANSWER.match(answer) or len(answer.split()) > _MOST_WORDS:
        return None
    for pattern, whole in _QUESTIONS:
        match = pattern.match(asked)
        if match:
            return _read([_completed(whole, answer, match.groupdict(), asked)], rest, person)
    return None


def _completed(whole: str, answer: str, given: dict[str, str | None], asked: str) -> str:
    what = (given.get("what") or "").strip()
    if whole.endswith("years old"):
        answer = re.sub(r" ?(?:years?(?: old)?|yo|y/o)$", "", answer)
    article = "" if re.match(r"(?:an?|the|my) ", answer, re.IGNORECASE) else _article(answer)
    if answer[1:2].islower() and not _KEEPS_CASE.search(whole):
        answer = answer[0].lower() + answer[1:]
    pronoun = re.search(r"\b(?:his|her|its)\b", asked, re.IGNORECASE)
    return whole.replace("{a}", article + "{}").format(
        answer, what=what, pronoun=pronoun[0] if pronoun else "its"
    )


def _article(answer: str) -> str:
    return "an " if answer[:1].casefold() in "aeiou" else "a "


def _read(
    wholes: Sequence[str], rest: str, person: str | None
) -> tuple[list[Statement], str] | None:
    found = [
        Statement(each.content, each.memory_type, CONFIRMED, past=each.past)
        for whole in wholes
        for each in english.read(whole, person)
    ]
    return (found, rest) if found else None


def _last_question(content: str) -> str | None:
    """The question that a turn ends with, without its mark."""
    parts = re.split(r"(?<=[.!?:])\s+|\n", content.strip())
    asked = [each for each in parts[-2:] if each.endswith("?")]
    return plain(asked[-1].rstrip("? ")) if asked and len(asked[-1]) <= 160 else None


def _first_sentence(said: str) -> tuple[str, str]:
    parts = re.split(
        r"(?<=[^.\s][.!?])\s+|, but (?=i\b)|(?<=\w), (?=i (?:am|live|work)\b)", said, maxsplit=1
    )
    return parts[0].rstrip(".! "), parts[1] if len(parts) > 1 else ""
