"""Where English sentences are cut into clauses, and clauses into predicates; what is left off."""

import re
from typing import Final

from app.language.keyless import english_verbs as verbs
from app.language.keyless.english_whole_frames import WHOLE_FRAMES
from app.language.keyless.patterns import compiled

_MARKERS: Final = compiled(
    r"""
    (?:
        (?:
            well|thinking ahead|heads up|side note|howdy|so|oh|hi|hey|hello|hiya|yo|btw|
            by the way|also|and|but|anyway|anyways|plus|just so you know|just fyi|fyi|
            for context|quick context|context|some context|a bit of context|for the record|
            to be honest|tbh|honestly|honestly speaking|fun fact|you know|i guess|i must say|
            i have to say|i have to admit|i admit|as you know|as i said|as mentioned|
            one more thing|another thing|oh and|oh also|ok|okay|alright|right|yes|yeah|yep|
            yup|thanks|thank you|thx|great|cool|nice|perfect|sure|good morning|good evening|
            good afternoon|morning|greetings|first of all|basically|actually|in fact|frankly|
            personally|luckily|fortunately|unfortunately|sadly|in general|speaking of which|
            lol|haha|hmm|um|uh|look|listen|see|background|about me|a bit about me|
            a little about me|quick intro|intro|you should know that|you should know|
            i should mention that|i should mention|i should add that|i should say that|
            worth mentioning that|worth noting that|guess what|good news|big news|bad news|
            news|the thing is|the truth is|truth is|turns out|it turns out that|it turns out|
            i would say|i reckon|let me tell you|i forgot to mention that|i forgot to mention|
            i mean|hi there|hello there|hey there|hi all|small update|quick update|update|
            long story short|these days|anyway
        )(?:
            [,:!.]+ ?| - |
            [ ](?=
                (?:
                    i|my|we|our|the|this|me|just|on|in|at|since|for|every|not|love|hate|as|
                    btw|so|and|but|that|you should|please|remember|note|hey|hi|today|gonna|
                    going|got|moved|most|never|always|don't|do not
                )\b
            )
        )
    )
    """
)


_SUBJECT: Final = r"(?:i|my|we|our)\b"


_OTHER: Final = r"(?:he|she|they|it|you|this|that|there|those|these|the|what|how|which|who)\b"


_SPLIT: Final = compiled(
    rf"""
    \s*;\s*|\s+[-–—]+\s+|\s*—\s*|
    ,? (?:
        but|so|and|because|although|though|yet|plus|or|hence|therefore|while|whereas|
        meanwhile|and so|so that|and then
    ) (?:
        then |now |also |anyway |yes |usually |these days |nowadays |currently |at work |
        today |actually |still |sometimes |every \w+ |on \w+days |in \w+[ ]
    )?(?={_SUBJECT})|
    ,? (?:but|so|and|because|although|though|hence|therefore)[ ]
    (?=
        {_OTHER}|everyone\b|everybody\b|people\b|any\b|maybe\b|whatever\b|no more\b|please\b|
        can\b|could\b|would\b|should\b|nobody\b
    )|
    , (?={_SUBJECT}|{_OTHER})|, (?:so|hence|which|as|because|though|although) |
    , (?=
        (?:
            where|why|when|will|shall|which|whats|wheres|hows|whos|can|could|would|should|
            does|do|did|is|are|any|please|thanks|thank|help|give|show|tell|find|suggest|
            recommend|lol|haha|tbh|btw|wish|hope|sadly|unfortunately|yes|right|honestly|never|
            less|used to|formerly|previously|pretty|yeah|ok|okay|never|nobody|no
        )\b
    )|
    ,? so (?=\w+ (?:is|are|was|were|has|have|gets?|matters?|takes?)\b)|
    ,? but (?=
        not\b|never\b|still\b|cannot\b|do\b|have\b|am\b|hate\b|love\b|like\b|prefer\b|adore\b|
        live\b|work\b|enjoy\b|now\b|grew\b|moved\b|terrible\b|dislike\b
    )
    """
)


_JOINED: Final = compiled(
    r"""
    ,? and (?=
        (?:
            (?:also|now|still|currently|then|really|always|usually|often|never|just|recently)[ ]
        )*(?:
            am|live|work|love|like|hate|prefer|adore|enjoy|dislike|speak|have|own|play|study|
            teach|drive|do not|cannot|never|always|usually|want|plan|moved|started|got|bought|
            run|use|graduated|adopted|joined|studied|would|know|collect|volunteer|was|going|
            married|come|eat|drink|go
        )\b
    )|
    ,? (?=based in |living in |working (?:as|at|for) )|
    , (?=now (?:living |based |working )?(?:in|at) )
    """
)


TRAILING: Final = compiled(
    r"""
    (?:
        [,.]? (?:
            lol|haha|hahaha|tbh|btw|by the way|sadly|unfortunately|wish me luck|
            (?:pretty |so |very )?\w+ ngl|ngl|nice to meet you|though|you know|right|ok|okay|
            thanks|thank you|please|honestly|i think|i guess|to be honest|fyi|if that helps|
            if it helps|if that matters|if you must know|just so you know|
            in case you(?: are)? wonder(?:ing)?|in case it matters|as you know|as always|
            lately|in my (?:book|opinion)|if you ask me|imo|imho|and it shows|yes really|
            can you believe it|cannot believe it|for the record|xd|:\)|:d|;\)|:\(|too|as well
        )
    )+$
    """
)


_SUBJECTLESS: Final = (
    (
        compiled(
            r"""
            (?:
                (?:
                    just|really|also|absolutely|still|recently|totally|definitely|personally|
                    always|usually|never|finally
                )[ ]
            )*(?:
                love|hate|adore|prefer|enjoy|dislike|detest|cannot stand|moved to|
                got (?:a new|married|engaged|promoted|my)|turned [0-9]|bought (?:a|my)|
                graduated|started as|joined|
                been (?:an? |in |at |with |living|working|playing|doing)|
                never (?:understood|learned|got the|saw the)|taught myself|suck at|
                went (?:with|for) (?:the|a|an)|
                cannot (?:eat|have|spend|drink|afford|go over|tolerate)|
                do not (?:care for|eat|drink|like|smoke|drive|own|have)|drive a|live in|
                live with|work (?:at|as|for|in)|grew up|
                have (?:a|two|three|four) (?:\w+ )?(?:
                    kids?|children|dogs?|cats?|brothers?|sisters?|sons?|daughters?|wife|
                    husband
                )|
                play (?:the )|speak|own a|was (?:born|raised)|
                started (?:a new|at|working|learning)|adopted|used to|quit my|would rather|
                switched to|wake up at|
                always (?:wear|eat|drink|have|take|sleep|wake|use|work|carry|book)|
                never (?:eat|drink|ate|wear|work)
            )\b
            """
        ),
        "I ",
    ),
    (
        compiled(
            r"""
            (?:
                (?:
                    just|also|originally|currently|recently|proud|severely|still|happily|now|
                    not|really|mildly
                )[ ]
            )*(?:
                employed (?:as|by|at)|allergic to|vegan\b|vegetarian\b|
                based (?:in|out of|near)|married\b|from (?-i:[A-Z])|turning [0-9]|residing|
                (?:
                    big on|(?:big|huge) fan of|(?:in )?between jobs|
                    trying to (?:
                        lose|quit|cut|eat (?:less|more|better|health)|save|become|learn|stop|
                        reduce|conceive|gain
                    )|
                    looking to (?:buy|move|adopt|get|start|change|switch|retire|learn|become)|
                    a (?:huge |big )?fan of|into|fond of|keen on|crazy about
                )|
                going to|planning (?:to|on)|training for|living in|studying|
                working (?:as|at|on|in)|learning|saving (?:up )?for|starting (?:at|a new|my)|
                moving to|[0-9]{2} (?:years old|yo|y/o)|lactose|diabetic|pregnant|mom of|
                dad of|mother of|father of|parent of|
                an? (?:nurse|doctor|teacher|student|developer|engineer|designer|lawyer)
            )
            """
        ),
        "I am ",
    ),
    (compiled(r"(?:born (?:in|on|and)|raised in)\b"), "I was "),
    (
        compiled(r"no longer (?:in|at|with|an?|working|living|vegan|vegetarian|single|married)\b"),
        "I am ",
    ),
    (
        compiled(
            r"""
            (?:
                [0-9]+|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|
                thirty
            )\+? years of[ ]
            """
        ),
        "I have ",
    ),
    # "Living out here in rural Kansas, …", "hailing from Cartagena, …".
    (
        compiled(
            r"""
            (?:living|residing) (?:out |here |over |up |down |alone )*(?:in|near|on|with)\b
            (?!
                .* (?:
                    is|are|was|sounds?|seems?|can|would|makes?|means?|has|could|will|does|
                    costs?
                )\b
            )
            """
        ),
        "I am ",
    ),
    (compiled(r"hailing from (?=(?-i:[A-Z]))"), "I am "),
    # "Lost my dad on Sunday": what happened, without whom it happened to.
    (
        compiled(
            rf"""
            (?:(?:just|finally|recently|also) )*
            (?!married|left|quit|changed|put |retired \w+ (?:here|from|in|living|and)\b)
            (?:{verbs.EVENT_VERBS})(?![\w-])
            """
        ),
        "I ",
    ),
)


_SUBJECT_FIRST: Final = compiled(_SUBJECT)


_FRONT: Final = compiled(
    r"""
    (?:
        as an?|being an?|speaking as an?|in|on|at|since|for|every|most|during|after|before|last|
        next|until|when|whenever|while|with|due to|because of|thanks to|nowadays|lately|
        these days|usually|normally|generally|typically|currently|recently|growing up|back in|
        originally|once|ever since|by day|at work|yesterday|two|three|a few
    )\b[^,]{0,50}|
    yesterday|usually|normally|currently|nowadays|lately|originally
    """
)


def without_markers(said: str) -> str:
    for _ in range(4):
        match = _MARKERS.match(said)
        if not match or match.end() == len(said):
            return said
        said = said[match.end() :].lstrip()
    return said


_SUBJECT_I: Final = compiled(r"(?:i|we)\b")
_CONTINUES: Final = compiled(
    r"(?:hate|love|like|prefer|adore|live|work|enjoy|dislike|do not|cannot|have|am)\b"
)
# "Since I am diabetic, could you …": what holds, and not since when.
_CAUSE: Final = compiled(
    r"""
    (?:since|because|given(?: that)?|seeing (?:as|that)|considering(?: that)?|now that|
        asking because|seeing as how|as(?= (?:i|we) (?:am|are|have|cannot|live|work)\b)
    ) (?=
        (?:i|we) (?:
            am|are|have (?!known|been|had|lived|worked)|cannot|do not|live|work|only|own|hate|
            love|prefer|like|need|use|drive|get|eat|teach|run|speak
        )\b|
        (?:my|our) (?!(?:\w+ )?(?:died|was|were|moved|left)\b)|
        (?-i:[A-Z])[\w-]+ is (?:my )?home\b
    )
    """
)


def clauses(said: str) -> list[str]:
    """Cut at what a new subject follows; a clause without one takes the subject before it."""
    pieces: list[str] = []
    start = 0
    for match in _SPLIT.finditer(said):
        if said[start : match.start()].strip():
            pieces.append(said[start : match.start()].strip(" ,"))
        start = match.end()
    pieces.append(said[start:].strip(" ,"))
    found: list[str] = []
    for piece in pieces:
        before = found[-1] if found else ""
        trimmed = _CAUSE.sub("", without_markers(TRAILING.sub("", piece)))
        if _FRONT.fullmatch(before) and trimmed:
            found[-1] = f"{before}, {trimmed}"
            continue
        if _SUBJECT_I.match(before) and _CONTINUES.match(trimmed):
            trimmed = f"I {trimmed}"
        found.append(_subjected(trimmed))
    return [each for each in found if each]


def _subjected(clause: str) -> str:
    """Give a clause that leaves out "I" or "I am" what it leaves out."""
    if _SUBJECT_FIRST.match(clause) or any(each.pattern.match(clause) for each in WHOLE_FRAMES):
        return clause
    if re.match(r"been ", clause, re.IGNORECASE):
        return f"I have {clause[0].lower()}{clause[1:]}"
    for pattern, subject in _SUBJECTLESS:
        if pattern.match(clause):
            return f"{subject}{clause[0].lower()}{clause[1:]}"
    return clause


def predicates(rest: str) -> list[str]:
    parts = []
    start = 0
    for match in _JOINED.finditer(rest):
        if match.start() > 2:
            parts.append(rest[start : match.start()].strip(" ,"))
            start = match.end()
    parts.append(rest[start:])
    return [
        f"am {part}"
        if n and re.match(r"(?:based|living|working|now) ", part, re.IGNORECASE)
        else part
        for n, part in enumerate(parts)
        if part
    ]
