"""How somebody introduces themselves in English."""

import re
from collections.abc import Iterator
from typing import Final

from app.language.keyless import english_words as words
from app.language.keyless.english_frames import NAME
from app.language.keyless.english_wholes import one, whole
from app.language.keyless.patterns import joined
from app.language.keyless.statements import Statement


def _called(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user wants to be called {match['name']}", "fact")


def _named(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user is called {match['name']}", "fact")


def _introduced(match: re.Match[str]) -> Iterator[Statement]:
    """Up to four statements: “I am Tomasz, 52, electrician from Gdańsk”."""
    if match["name"]:
        yield from one(f"the user is {match['name']}", "fact")
    if match["age"]:
        yield from one(f"the user is {match['age']} years old", "fact")
    if match["what"]:
        what = re.sub(r"^(?:an?|the) ", "", match["what"])
        article = "an" if what[:1].casefold() in "aeiou" else "a"
        yield from one(f"the user is {article} {what}", "fact")
    if match["place"]:
        verb = "is from" if match["how"].casefold() == "from" else "lives in"
        yield from one(f"the user {verb} {match['place']}", "fact")


_CALLED_NAME = joined(r"""
    (?P<name>
        (?!
            (?:
                back|when|if|later|a|an|the|at|on|tomorrow|today|asap|crazy|maybe|names|for|
                again|old|out|stupid|whatever|now|in|by
            )\b
        )(?:(?:dr|mr|mrs|ms|prof)\.? )?[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?
    )
    """)


_NO_NAME = r"""
    (?:
        thanks?|once|never|back|over|hello|hi|hey|sorry|not|oh|yes|no|same|me|wrong|try|nope|
        please|time|cheers|here|there|it|this|you|we|i|everyone|nobody|so|good|great|ok|okay|
        up|start|all|nothing|something
    )\b
    """
_PROPER = rf"(?-i:{NAME}(?: {NAME}){{0,2}})"


NAMES: Final = (
    # "Please call me Sam", "my friends call me Lex".
    whole(
        rf"""
        (?:
            please |just |you can |you may |feel free to |but |and |everyone |everybody |
            people |my friends |friends |most people |they all |colleagues )*
        (?:call|calls|calling) me {_CALLED_NAME}(?=$|[,.!]| please| instead| not| for short)
        """,
        _called,
    ),
    # "Everyone in the office knows me as Big Lou".
    whole(
        rf"""
        (?:everyone|everybody|people|most people|friends|they|colleagues)(?: [\w ]{{2,25}})?
        [ ]knows? me as (?P<name>{_PROPER})
        """,
        _called,
    ),
    # "They named me Persephone".
    whole(
        rf"""
        (?:they|my (?:parents|mum|mom|dad|mother|father|folks)) named me (?P<name>{_PROPER})
        (?:,.*)?$
        """,
        _named,
    ),
    # "The name is Ada", "this is Ada again".
    whole(
        rf"""
        (?:this is|the name is|name is|names) (?P<name>{_PROPER})(?: (?:here|speaking|again))?$
        """,
        _named,
    ),
    # "I am Tomasz, 52, electrician from Gdańsk", "I am 30, a nurse".
    whole(
        rf"""
        i am (?:(?P<name>(?!(?i:{"|".join(sorted(words.NAMES_NOT))})\b){_PROPER}),? )?(?:and )?
        (?P<age>[1-9][0-9])(?: years old| yo| y/o)?,(?: an?)? (?P<what>
            (?!
                and\b|but\b|so\b|not\b|i\b|my\b|still\b|going|turning|married|single|living|
                working|from
            )[a-z][\w' -]{{2,50}}?
        )(?: (?P<how>from|based in|living in|in) (?P<place>[^,]{{2,40}}))?$
        """,
        _introduced,
    ),
    # "I am Ada, and I am a pilot from Turin".
    whole(
        rf"""
        i am (?P<name>(?!(?i:{"|".join(sorted(words.NAMES_NOT))})\b){_PROPER})(?:,| and)[ ]
        (?:i am )?(?:(?P<age>[1-9][0-9])(?: years old)?(?:,|$) ?)?
        (?P<what>
            (?:an? )?(?!and\b|but\b|so\b|not\b|i\b|my\b|living|from|based)(?:\w+ ){{0,3}}?[a-z]\w+
            (?:
                er|or|ist|ian|nurse|student|engineer|chef|dad|mom|lawyer|intern|scientist|ant|
                yst|tect|man|woman
            )
        )?(?:(?:,| and|) ?(?P<how>from|based in|living in) (?P<place>[^,]{{2,40}}))?$
        """,
        _introduced,
    ),
    # "Ada here".
    whole(
        rf"""
        (?!{_NO_NAME})(?P<name>{_PROPER})(?: from [\w ]{{3,30}}(?= here| speaking))?[ ]
        (?:here|speaking|again|by the way)(?:,.*)?$
        """,
        _named,
    ),
    # "You can address me as Dr. Byron".
    whole(
        rf"""
        (?:you (?:can|may) |please |feel free to )*(?:address|refer to|know) me as (?P<name>
            (?:(?:dr|mr|mrs|ms|prof)\.? )?{_PROPER}
        )
        """,
        _called,
    ),
)
