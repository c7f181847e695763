"""Turns of phrase in English for what the speaker likes, dislikes or does easily."""

import re
from collections.abc import Iterator
from typing import Final

from app.language.keyless.english_forms import others, predicate
from app.language.keyless.english_wholes import one, whole
from app.language.keyless.patterns import compiled
from app.language.keyless.statements import CONFIRMED, IMPLIED, Statement

# What is spoken of here and now is no taste: "this error drives me mad".
_AT_HAND: Final = compiled(
    r"""
    (?:
        it|this|that|these|those|which|what|who|he|she|they|you|your|nothing|something|
        everything|anything|
        the (?!(?:sea|ocean|dark|rain|cold|heat|sun|smell|sound|mountains|forest|beach|gym)\b)|
        there|here|someone|everyone|nobody|one|so|and|but|
        (?:the|my|our|her|his) (?:
            code|error|app|script|model|output|result|command|program|bug|build|test|compiler|
            answer|idea|thought|fact|way|first|second|last|boss|teacher|wife|husband|mom|dad|
            mum|mother|father|sister|brother|friend|son|daughter|kids?|cat|dog|computer|
            laptop|phone|page
        )
    )\b
    """
)


def _moved(match: re.Match[str]) -> Iterator[Statement]:
    """As in “small talk drains me”."""
    if not _AT_HAND.match(match["what"]):
        text = f"{others(match['what'])} {match['does']} the user{match['how'] or ''}"
        yield from one(text, "preference", CONFIRMED)


def _dear(match: re.Match[str]) -> Iterator[Statement]:
    if not _AT_HAND.match(match["what"]):
        text = f"{others(match['what'])} {match['is']} the user's {match['dear']}"
        yield from one(text, "preference", CONFIRMED)


def _easy(match: re.Match[str]) -> Iterator[Statement]:
    if not _AT_HAND.match(match["what"]):
        yield from one(f"{others(match['what'])} {match['how']} the user", "skill", CONFIRMED)


def _best(match: re.Match[str]) -> Iterator[Statement]:
    if not _AT_HAND.match(match["what"]):
        yield from one(
            f"the user finds that {match['what']} are {match['best']}", "preference", IMPLIED
        )


def _one_thing(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user {predicate(match['how'])} {others(match['what'])}", "preference")


def _rather(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user prefers {match['a']} over {match['b']}", "preference", CONFIRMED)


def _nothing_like(match: re.Match[str]) -> Iterator[Statement]:
    what, up = others(match["what"]), f" {match['up'].strip()}" if match["up"] else ""
    yield from one(f"{what} {match['does']} the user{up}", "preference", CONFIRMED)


def _live_on(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user could {match['how']} {others(match['what'])}", "preference", IMPLIED)


TASTES_SAID_FIRMLY: Final = (
    # "I could live on dumplings", "I could watch snooker all day".
    whole(
        r"""
        (?:i|we) could (?:easily |happily |literally )?
        (?P<how>live on|eat|watch|listen to|drink)[ ]
        (?P<what>
            (?!(?:a horse|it|this|that)\b)[\w' ]{3,40}?
            (?: (?:every day|all day|forever|for ever|every single day|nonstop|for days))|
            (?<=live on )(?!it|this|that)[\w' ]{3,40}
        )$
        """,
        _live_on,
    ),
    # "One thing I cannot resist" begins with "if" now and then: it is no condition.
    whole(
        r"""
        if there is (?:only )?one thing (?:that )?i[ ]
        (?P<how>
            love|hate|adore|cannot stand|cannot resist|cannot live without|enjoy|dislike|
            despise
        )(?: (?:most|more than anything))?,? (?:is|it is) (?P<what>\S.+)
        """,
        _one_thing,
    ),
)
TASTES_SAID: Final = (
    # "Small talk drains me", "the sea calms me down".
    whole(
        r"""
        (?P<what>(?!i\b|we\b)[\w' -]{3,40}?) (?P<does>
            (?:always |really |just |totally )?(?:
                drains?|bores?|exhausts?|terrif(?:y|ies)|scares?|relax(?:es)?|calms?|soothes?|
                energi[sz]es?|stress(?:es)?|annoys?|irritates?|fascinates?|excites?|disgusts?|
                freaks?|grosses|gross|creeps?|cheers?|inspires?|nauseates?|intimidates?|
                depresses|bothers?|bugs?|delights?|do nothing for|does nothing for|puts?|
                turns?|drives?
            )
        ) me(?P<how>
            [ ](?:out|down|up|to tears|to death|like nothing else|more than anything|every time)
        )?(?:,.*)?$
        """,
        _moved,
    ),
    # "Mushrooms are the worst", "cats are the best".
    whole(
        r"""
        (?P<what>(?!i\b|we\b|my\b|our\b)[\w'-]{3,20}(?: [\w'-]{3,20}){0,2}) (?P<is>are)[ ]
        (?P<best>the (?:worst|best)|overrated|underrated)(?:,.*)?$
        """,
        _best,
    ),
    # "One thing I cannot resist is a flea market".
    whole(
        r"""
        (?:if )?(?:there is |the )?(?:only )?(?:one|a) thing (?:that )?i[ ]
        (?P<how>
            love|hate|adore|cannot stand|cannot resist|cannot live without|enjoy|dislike|
            despise
        )(?: (?:most|more than anything))?,? (?:is|it is) (?P<what>\S.+)
        """,
        _one_thing,
    ),
    # "Jazz is my jam, esp. Monk", "gardening is my therapy".
    whole(
        r"""
        (?P<what>(?!i\b|we\b)[\w' -]{2,40}?) (?P<is>is|are)[ ]
        (?:so |totally |really |definitely |100% )*my[ ]
        (?P<dear>
            jam|thing|happy place|therapy|kryptonite|weakness|addiction|obsession|
            love language|first love|one true love|catnip|religion|bread and butter|
            cup of tea|vibe|poison of choice|pet peeve|biggest pet peeve|
            idea of (?:fun|heaven|hell|a nightmare)
        )(?:,.*)?$
        """,
        _dear,
    ),
    # "Fixing bicycles comes easy to me".
    whole(
        r"""
        (?P<what>(?!i\b|we\b)[\w' -]{3,40}?) (?P<how>(?:has always |have always )?(?:comes?|came)[ ]
        (?:very |pretty |really )?(?:easy|easily|naturally|hard) to) me(?:,.*)?$
        """,
        _easy,
    ),
    # "Crunchy > smooth".
    whole(
        r"(?P<a>[a-z][a-z' -]{2,30}) > (?P<b>[a-z][a-z' -]{2,30})(?:,.*)?$",
        _rather,
    ),
    # "Nothing relaxes me like ironing".
    whole(
        r"""
        nothing (?P<does>relaxes|calms|soothes|annoys|bores|excites|cheers|irritates|scares) me[ ]
        (?P<up>up |down )?(?:like|as much as|more than) (?P<what>[^,]{3,40})(?:,.*)?$
        """,
        _nothing_like,
    ),
)
