"""Turns of phrase in English that say something of the speaker without a plain subject."""

import re
from collections.abc import Iterator
from typing import Final

from app.language.keyless.english_forms import others, sentence
from app.language.keyless.english_wholes import one, whole
from app.language.keyless.patterns import compiled
from app.language.keyless.statements import EXPLICIT, IMPLIED, Statement


def _preferred(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user prefers {match['a']} over {match['b']}", "preference", IMPLIED)


def _unbeaten(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user loves {others(match['what'])}", "preference", IMPLIED)


def _limit(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(re.sub(r"\b(?:my|our)\b", "the user's", match["what"], count=1), "constraint")


def _lives(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user lives in {match['place']}", "fact")


def _went_with(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user decided to {others(match['what'])}", "decision")


def _favourite(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"{match['what']} {match['is']} the user's {match['of']}", "preference")


def _not_for_me(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user wants no {match['what']}", "constraint", IMPLIED)


# What is spoken of here and now makes nobody sick for good.
_AT_HAND: Final = compiled(
    r"""
    (?:it|this|that|these|those|which|what|he|she|they|you|your|
    the (?:code|error|app|script|model|output|result|command|program))\b
    """
)
_MAKES_ILL: Final = compiled(
    r"""
    \b(?:
        sick|ill|headaches?|migraines?|hives|rash|nause\w+|dizzy|sleepy|anxious|heartburn|bloated|
        cough|sneeze|itchy|stomach\w*|jittery|asthma|gas|cramps|reflux|gag|puke|vomit|queasy|
        shudder|cringe|drowsy|wheeze|swell|break out|uncomfortable|nervous|cry
    )\b
    """
)


def _disagrees(match: re.Match[str]) -> Iterator[Statement]:
    """As in “spicy food doesn't agree with me” and “horror is not my thing”."""
    what, verb = match["what"], match["how"]
    if _AT_HAND.match(what):
        return
    if verb.split()[-1].startswith(("make", "give")) and not _MAKES_ILL.search(match["rest"]):
        return
    taste = ("not" in verb and "my" in verb) or "for" in verb
    text = others(f"{what} {verb.replace(' my', ' the users')} {match['rest']}")
    text = text.replace("the users", "the user's").replace(" them", " the user", 1)
    yield from one(text, "preference" if taste else "constraint")


def _got_rid(match: re.Match[str]) -> Iterator[Statement]:
    what = others(re.sub(r"^(?:my|our|the) ", "their ", match["what"], flags=re.IGNORECASE))
    how = re.sub(r"^(?:i|we) ", "", match["how"], flags=re.IGNORECASE)
    text = sentence(f"the user {others(how)} {what}")
    yield Statement(text, "fact", EXPLICIT, retracts=True)


def _group(match: re.Match[str]) -> Iterator[Statement]:
    text = sentence(f"the user is part of {others(match['what'])}")
    yield Statement(text, "fact", EXPLICIT, project=True)


PHRASES: Final = (
    # "Sold my car", "we cancelled our gym membership".
    whole(
        r"""
        (?P<how>
            (?:(?:i|we) )?(?:(?:just|had to|finally|recently|have|already) )*
            (?:sell|sold|gave away|got rid of|donated|scrapped|cancel|cancelled|canceled)
        ) (?P<what>
            (?:my|our|the) (?:old )?(?:
                car|bike|house|flat|apartment|motorcycle|boat|piano|guitar|laptop|dog|cat|
                company|business|gym membership|membership|subscription|netflix subscription|
                [\w-]+ (?:subscription|membership)|tv|television|console|van|xbox|ps5|
                playstation|ipad
            )
        )\b
        """,
        _got_rid,
    ),
    # "We are a small team of five".
    whole(
        r"""
        (?:we|i) (?:are|am) (?:part of )?(?P<what>
            a (?:small |tiny |large |remote |big |distributed )*
            (?:team|group|company|startup|family|band|crew|couple|nonprofit) (?:
                of|with|that|building|making|based|in
            )\b.+
        )
        """,
        _group,
    ),
    # "Tea over coffee, always".
    whole(
        r"""
        (?P<a>(?!nothing)[\w' -]{2,40}?) (?:over|rather than|instead of|beats|before) (?P<b>
            [\w' -]{2,40}?
        ),?(?: (?:for me|any ?day|every time|any time|always|all day|for sure))+
        (?: of the week)?,?(?: every time| always| please)?$
        """,
        _preferred,
    ),
    # "Nothing beats a good espresso".
    whole(
        r"""
        (?:nothing beats|you cannot beat|there is nothing (?:better than|like)) (?P<what>
            [^,]{3,50}?
        )(?: for me)?$
        """,
        _unbeaten,
    ),
    # "The deadline for our thesis is May 3".
    whole(
        r"""
        (?P<what>
            the (?:deadline|budget|limit|due date|maximum|max budget) (?:for|of|on) (?:
                my|our|the
            ) [\w ']{2,40} (?:is|has to be|must be) \S.*
        )
        """,
        _limit,
    ),
    # "Our flat is in Leeds".
    whole(
        r"""
        (?:my|our) (?:place|flat|apartment|house|home) is (?:
            in|near|outside|just outside|close to
        ) (?P<place>(?-i:[A-Z])[^,]{1,40})$
        """,
        _lives,
    ),
    # "Let us go with Kafka": to go with, stick with or settle on, not to take or use this once.
    whole(
        r"""
        (?:ok |okay |so |alright |then |right )*(?:let us|let's|we will|we'll|i will|i'll)
        (?:definitely |just |all )?(?P<what>
            (?:go with|stick with|stick to|settle on|opt for)[ ]
            (?!
                (?:
                    it|this|that|these|those|them|your|both|all|one|two|either|whatever|
                    option(?! \w+,)|some
                )\b|
                (?:the|a) (?:\w+ )?(?:
                    first|second|third|last|other|one|ones|former|latter|next|flow|same|
                    following|example
                )\b
            )\S.*
        )
        """,
        _went_with,
    ),
    # "Pizza is my favourite food".
    whole(
        r"""
        (?P<what>[\w' -]{2,40}?) (?P<is>is|are|has always been|will always be) my (?P<of>
            (?:all-time |absolute |second |least )?
            (?:favou?rite|go-to|guilty pleasure|biggest passion|passion|comfort food)
            (?: [\w' -]{2,30})?
        )$
        """,
        _favourite,
    ),
    # "Onions do not agree with me", "horror is not my thing".
    whole(
        r"""
        (?P<what>[\w' -]{3,40}?) (?P<how>
            (?:does not|do not) (?:really )?(?:agree with|sit well with)|
            (?:always )?(?:makes?|gives?)|(?:is|are) (?:really |just )?not for|
            (?:is|are) not (?:really )?my
        ) (?P<rest>
            (?:
                me\b(?! (?:
                        think|wonder|an?\b (?:idea|hint|error|warning)|the|any|some|nothing|
                        more|feel like|this|that|happy to
                    )
                ).*|
                (?:thing|cup of tea|style|jam|scene|bag|strong suit|forte|strength|strong point)$
            )
        )
        """,
        _disagrees,
    ),
    # "No meat for me".
    whole(
        r"""
        no (?P<what>
            (?:
                meat|pork|beef|fish|seafood|shellfish|dairy|gluten|nuts|peanuts|sugar|alcohol|
                eggs|soy|caffeine|coffee|mushrooms|onions|garlic|spicy food|lactose|cilantro|
                coriander|olives|red meat
            )(?: or [\w ]+)?
        )(?: for me| please)?,?(?: ever)?$
        """,
        _not_for_me,
    ),
)
