"""What English says of the people and animals of the speaker."""

import re
from typing import Final

from app.language.keyless import english_words as words
from app.language.keyless.english_forms import owned, sentence
from app.language.keyless.english_frames import NAME, Frame
from app.language.keyless.patterns import compiled, joined
from app.language.keyless.statements import CONFIRMED, Statement

_KIN_DONE: Final = joined(r"""
    (?:is|are|was|were) (?:
        (?:
            also|still|currently|now|both|severely|only|almost|already|turning|just|
            about to turn|originally
        ) )*
    """)


THEIR_FRAMES: Final = tuple(
    Frame(compiled(pattern), "fact")
    for pattern in (
        rf"""
        {_KIN_DONE}(?:
            called|named|
            an? (?!
                bit|little|lot|mess|genius|idiot|pain|nightmare|joke|huge|total|real|such|saint|
                angel|good|bad|great|terrible|big help
            )[\w-]+|
            the (?:
                head|ceo|owner|founder|director|principal|mayor|captain|oldest|eldest|youngest
            )|
            allergic|[0-9]+|
            (?:
                two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|
                fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|
                seventy|eighty|ninety
            )\b|
            from|based|vegan|vegetarian|pregnant|married|engaged|divorced|single|diabetic|
            left-handed|deaf|blind|autistic|lactose|gluten|celiac|coeliac|retired|unemployed|
            afraid of|terrified of|scared of|named after|studying|majoring|learning|training|
            working (?:as|at|for|in)|living in|getting married|expecting|due|
            in (?:
                [\w]+ grade|year|kindergarten|preschool|college|university|high school|
                med school|law school|the (?:army|navy|military|air force)|(?:his|her|their) \w+
            )|
            into|obsessed with|fluent|colou?r-?blind|moving to|graduating|starting|born|
            dyslexic|asthmatic|muslim|jewish|catholic|christian|hindu|buddhist|
            (?:german|french|dutch|greek|swiss|thai|czech|\w+(?:ish|ese|ian))\b|both
        )\b
        """,
        rf"is {NAME}(?: {NAME})?$".replace("[A-ZÀ-Þ]", "[A-Za-zÀ-þ]"),
        r"""
        (?:(?:just|recently|also|already) )?(?:has|have|had|suffers from|suffer from) (?:
            a |an |two |three |[0-9]+ |type [12] |severe |mild |high |low |just |always |been )*
        (?:\w+ )?(?:
            allergy|allergies|diabetes|asthma|adhd|epilepsy|dyslexia|dementia|alzheimer'?s|
            cancer|autism|celiac|coeliac|disease|arthritis|blood pressure|condition|stroke|
            surgery|baby|son|daughter|kids?|children|dogs?|cats?|degree|phd|practice|shop|
            company|restaurant|bakery|business|birthday|intolerance|syndrome|parkinson'?s|twins|
            diagnosed|living in|working (?:as|at|for|in)|married|cholesterol
        )\b
        """,
        r"""
        (?:
            (?:
                also|still|really|currently|now|both|always|usually|only|just|never|
                absolutely|recently|once
            )[ ]
        )*(?:
            lives?|works?|loves?|likes?|hates?|adores?|dislikes?|prefers?|enjoys?|plays?|
            speaks?|studie[sd]|study|teach(?:es)?|owns?|runs? an?|drives? an?|
            goes to (?!bed|sleep|the (?:bathroom|toilet|store))|attends?|
            turn(?:s|ed)? (?:
                [0-9]|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|
                fourteen|fifteen|sixteen|eighteen|twenty|thirty|forty|fifty|sixty|seventy|
                eighty|ninety
            )|
            was born|were born|died|passed away|
            got (?:married|engaged|divorced|promoted|into|a job|accepted)|moved|graduated|
            gave birth|started (?:school|kindergarten|college|university|working|at|a)|joined|
            retired|quit|broke (?:his|her|their)|grew up|comes? from|collects?|
            cannot (?:eat|have|swim|drive|tolerate|drink|stand)|
            does not (?:eat|drink|like|speak|drive|smoke|work|live)|
            do not (?:eat|drink|like|speak|live)|practi[cs]es?|competes?|sings?|paints?|
            coach(?:es)?|swims?|writes?|cooks?|works? as|goes by|eats? only|wants? to become|
            would like to become|needs? a wheelchair|came (?:home|back)|went missing|ran away|
            passed (?:his|her|their)|won|lost (?:his|her|their)|had (?:a|his|her|their)|
            sells?|makes|bakes|fixes|repairs|restores|stays? with|sleeps|snores|barks|serves|
            commutes|travels|volunteers|manages?|suffers? from|is allergic|uses? a wheelchair|
            wears?|means the world
        )\b(?! (?:it|this|that|your|the way|on (?:this|that|it))\b)
        """,
    )
)


_ROLE: Final = compiled(
    rf"""
    (?P<what>
        (?:(?:one|two|three|four|both|all|most|some|half) of )?(?:my|our) (?:[\w-]+ ){{0,2}}?
        (?P<noun>{words.RELATIONS}|{words.PETS}|{words.ACQUAINTANCES})
    )(?P<name>,? (?-i:[A-Z])[\w'-]+(?: (?:and )?(?-i:[A-Z])[\w'-]+)?,?)? (?P<rest>.+)
    """
)


_AHEAD: Final = compiled(r"\b(?:getting|going|will|turns|starting|moving|expecting|due)\b")


_HAPPENED: Final = compiled(r"(?:passed away|died|gave birth|got|was born|just|had)\b")
_MALE: Final = frozenset(
    [
        "husband",
        "boyfriend",
        "father",
        "dad",
        "brother",
        "son",
        "uncle",
        "nephew",
        "grandfather",
        "grandpa",
        "stepson",
        "stepfather",
        "stepbrother",
        "father-in-law",
        "brother-in-law",
        "grandson",
        "ex-husband",
        "godson",
        "landlord",
    ]
)
_FEMALE: Final = frozenset(
    [
        "wife",
        "girlfriend",
        "mother",
        "mom",
        "mum",
        "mommy",
        "sister",
        "daughter",
        "aunt",
        "niece",
        "grandmother",
        "grandma",
        "granny",
        "stepdaughter",
        "stepmother",
        "stepsister",
        "mother-in-law",
        "sister-in-law",
        "granddaughter",
        "ex-wife",
        "goddaughter",
        "landlady",
    ]
)
_MANY: Final = frozenset(
    [
        "parents",
        "brothers",
        "sisters",
        "sons",
        "daughters",
        "kids",
        "children",
        "twins",
        "grandparents",
        "in-laws",
        "grandkids",
        "dogs",
        "cats",
        "pets",
        "guinea pigs",
        "chickens",
        "siblings",
    ]
)
# "my sister Maria", "our old dog", "I have a son named Leo".
_MENTIONED: Final = compiled(
    rf"""
    \b(?:my|our|(?:have|has|got|adopted) an?) (?P<kind>(?:[\w-]+ ){{0,2}}?)
    (?P<noun>{words.RELATIONS}|{words.PETS})\b(?!'s|-)
    (?:,? (?:named |called )?(?P<name>(?-i:[A-Z])[\w-]+))?
    """
)
_PRONOUN: Final = compiled(
    r"(?:(?P<he>he|his)|(?P<she>she|her)|(?P<it>it|its)|(?P<they>they|their)) (?P<rest>\S.*)"
)


def of_people(clause: str) -> Statement | None:
    """What is said of family and animals, and the names of others.

    None when the clause is about nobody near; a statement without content when it says nothing
    that lasts.
    """
    role = _ROLE.match(clause)
    if not role:
        return None
    apposed = role["name"] and role["name"].startswith(",")
    framed = any(frame.pattern.match(role["rest"]) for frame in THEIR_FRAMES)
    named = role["name"] or re.match(r"(?:is|are) (?:called|named)\b", role["rest"])
    known = named or not re.fullmatch(words.ACQUAINTANCES, role["noun"], re.IGNORECASE)
    if not known or not (apposed or framed):
        # "My boss Ingrid wants this by Monday" gives a name all the same.
        called = owned(role["what"]) + f" is called {(role['name'] or '').strip(' ,')}"
        return Statement(sentence(called) if role["name"] else "", "fact", CONFIRMED)
    kind = "event" if _HAPPENED.match(role["rest"]) else "fact"
    return Statement(sentence(owned(clause)), kind, past=_AHEAD.search(role["rest"]) is None)


def person_in(said: str) -> str | None:
    """Whom a sentence names, where it names one: "my sister Maria"."""
    found = list(_MENTIONED.finditer(said))
    if not found or len({each["noun"].casefold() for each in found}) > 1:
        return None
    name = next((f" {each['name']}" for each in found if each["name"]), "")
    return f"my {found[0]['noun'].casefold()}{name}"


def put_for_pronoun(clause: str, person: str) -> str:
    """The clause with the person in the place of "he" or "her", if the pronoun can mean them."""
    match = _PRONOUN.match(clause)
    if not match:
        return clause
    noun = person.split(" ")[1]
    many = noun in _MANY
    fits = {
        "he": not many and noun not in _FEMALE,
        "she": not many and noun not in _MALE,
        "it": not many and re.fullmatch(words.PETS, noun) is not None,
        "they": many,
    }
    which = next(key for key in fits if match[key])
    if not fits[which]:
        return clause
    if match[which].casefold() in {"his", "her", "its", "their"}:
        return f"my {noun}{chr(39)}s {match['rest']}"
    return f"{person} {match['rest']}"
