"""Turns of phrase in English for where the speaker stands: home, age, work, plans."""

import re
from collections.abc import Iterator
from typing import Final

from app.language.keyless.english_forms import others
from app.language.keyless.english_wholes import one, whole
from app.language.keyless.statements import CONFIRMED, IMPLIED, Statement


def _planned(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user's {match['noun']} is {others(match['what'])}", "goal", past=False)


def _home(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user lives in {match['place']}", "fact", CONFIRMED)


def _aged(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user is {match['age']} years old", "fact", IMPLIED)


def _paid(match: re.Match[str]) -> Iterator[Statement]:
    yield from one(f"the user works for {match['who']}", "fact", CONFIRMED)


def _somebody(match: re.Match[str]) -> Iterator[Statement]:
    """As in “as somebody who has driven trucks for years, I …”."""
    yield from one(f"the user {others(match['what'])}", "fact", IMPLIED)


def _in_hand(match: re.Match[str]) -> Iterator[Statement]:
    who = "the user's team is" if match["who"].casefold().startswith("we") else "the user is"
    yield from one(f"{match['about']} that {who}{match['does']} {others(match['what'])}", "fact")


def _project_name(match: re.Match[str]) -> Iterator[Statement]:
    what = re.sub(r"\b(?:our|my)\b", "the user's", match["what"], flags=re.IGNORECASE)
    yield from one(f"{what} {others(match['name'])}", "fact", project=True)


def _suffered(match: re.Match[str]) -> Iterator[Statement]:
    text = re.sub(r"\b(?:my|our)\b", "the user's", match[0], count=1, flags=re.IGNORECASE)
    yield from one(others(re.sub(r"\bme\b", "the user", text, count=1)), "event")


def _here(match: re.Match[str]) -> Iterator[Statement]:
    what = match["what"].strip().lower()
    article = "an" if what[0] in "aeiou" else "a"
    yield from one(f"the user is {article} {what}", "fact", CONFIRMED)


LIFE_SAID_FIRMLY: Final = (
    # "At 67 I still learn", "being 19 and broke, …": an age in passing.
    whole(
        r"""
        (?:at|being|aged) (?P<age>[1-9][0-9])(?: years old)?
        (?=,? i (?:still|am|figured|finally|cannot|do not|feel|want|have|really|should|need)\b|
        (?: and [\w ]{3,20})?(?:,|$))
        """,
        _aged,
    ),
    # "As somebody who has driven trucks for years, I can tell you …".
    whole(
        r"""
        (?:as|being|speaking as) (?:somebody|someone|a person|one|an? (?:man|woman|guy)) who[ ]
        (?P<what>(?!(?:is|was) (?:new|not|trying|just)\b)(?:has|is|was|have|had|grew|spent|lives?|
        works?|loves?|hates?|plays?|teaches|owns?|runs|drives?|cannot|does not)\b[^,]{3,70}),
        """,
        _somebody,
    ),
)
LIFE_SAID: Final = (
    # "The plan is to open a second shop in Bruges".
    whole(
        r"""
        (?:the|my|our) (?:(?:big|long-term|longer|whole|ultimate|main|current|new|end|next) )*
        (?P<noun>plan|goal|dream|aim|idea|hope|ambition|mission|objective|target)[ ]
        (?:for [\w ]{3,25} )?is (?P<what>
            to (?!
                (?:
                    use|get (?:the|this|a list)|write|find|make (?:this|it|a function|the)|
                    have the(?:script|function|code)|sort|parse|print|convert|fix|check|show|
                    test|call|return|loop|iterate
                )\b
            )\w+ .+
        )
        """,
        _planned,
    ),
    # "The thesis I am writing is about soil fungi", "the app we are building must run offline".
    whole(
        r"""
        (?P<about>the [\w -]{3,30}?) (?:that |which )?
        (?P<who>i am|we are|i have been|we have been)
        (?P<does>
            [ ](?:
                writing|building|working on|developing|designing|making|researching|running|
                leading|planning|organi[sz]ing
            )
        ) (?P<what>
            (?:is|are|runs|uses|will|must|has to|has|deals|covers|needs to)
            (?!(?:not|giving|throwing|failing|slow|broken|stuck|too|so|really)\b)\b.+
        )
        """,
        _in_hand,
    ),
    # "The codename for the redesign is Heron".
    whole(
        r"""
        (?P<what>
            the (?:
                codename|code name|working title|project name|internal name|name|mascot|
                deadline|launch date|release date
            ) (?:of|for) (?:the|our|my) [\w -]{3,30} is
        ) (?P<name>(?!not|what|the same)\S.*)
        """,
        _project_name,
    ),
    # "Someone stole my bike", "they broke into our car".
    whole(
        r"""
        (?:yesterday (?:morning |afternoon |evening |night )?|last \w+ )?
        (?P<what>
            (?:someone|somebody|they|thieves|a (?:car|truck|driver|drunk driver|dog))[ ]
            (?:has |have )?(?:
                stole|stolen|broke into|crashed into|hit|rear-ended|vandali[sz]ed|keyed|bit|
                burgled|robbed|ran over
            ) (?:my|our|me)\b.*
        )
        """,
        _suffered,
    ),
    # "Retired firefighter here".
    whole(
        r"""
        (?P<what>
            (?:(?:retired|former|fellow|junior|senior|freelance|ex-)?[ -]?(?:[\w-]+ )?)?
            (?:
                firefighter|nurse|teacher|engineer|developer|dev|doctor|lawyer|student|
                designer|chef|cook|electrician|plumber|pilot|accountant|farmer|librarian|
                journalist|carpenter|mechanic|paramedic|vet|dentist|pharmacist|therapist|
                translator|writer|musician|photographer|architect|baker|barista|scientist|
                researcher|analyst|manager|founder|mom|mum|dad|grandma|grandpa|parent|
                pensioner|veteran
            )
        ) here(?:,.*)?$
        """,
        _here,
    ),
    # "Home is a houseboat in Amsterdam".
    whole(
        r"""
        home is (?:now |currently )?(?:an? [\w -]{3,25} )?(?:in|near|on)[ ]
        (?P<place>(?-i:[A-Z])[\w' -]{2,30})$
        """,
        _home,
    ),
    # "Toyota has been my employer for years".
    whole(
        r"""
        (?P<who>(?-i:[A-Z])[\w&'-]*(?: (?-i:[A-Z])[\w&'-]*){0,2}) (?:is|has been) my employer\b.*
        """,
        _paid,
    ),
    # "Tallinn is home for me".
    whole(
        r"""
        (?P<place>(?-i:[A-Z])[\w' -]{2,30}) is (?:now )?(?:my )?home
        (?: for me| to me| now| base| these days)*$
        """,
        _home,
    ),
    # "Vodafone pays my bills".
    whole(
        r"""
        (?P<who>(?-i:[A-Z])[\w&'-]*(?: (?-i:[A-Z])[\w&'-]*){0,2}) (?:pays|signs) my[ ]
        (?:bills|salary|rent|wages|paycheck|pay ?checks?|cheques?|pay)$
        """,
        _paid,
    ),
)
