"""What somebody says of themselves in English that does not last, or is not meant."""

from typing import Final

from app.language.keyless import english_words as words
from app.language.keyless.english_frames import ADVERBIAL, frame

PASSING: Final = (
    # What is no statement of anything that lasts, however it is built.
    frame(
        None,
        r"""
        work as (?:hard|fast|much|long|quickly|well|little|best|if|usual|late|expected|a team)\b|
        (?:hate|love|like|despise|loathe) (?:yourself|it|that|this)$|
        (?:hate|despise|loathe) myself\b|
        (?:do not|did not|never|will not|cannot) (?:use|need|want|have|set)[ ]
        (?:that|this|these|those)\b|
        quit(?: (?:in|on|last|this|back|for|since|yesterday|today|ages|years|already|cold)\b.*)?$|
        am (?:batman|superman|spider-?man|iron ?man|groot|god|jesus|santa|napoleon|hulk|
            wonder woman|darth vader|legend|sherlock|sherlock holmes|james bond|thor|neo|
            catwoman|robin hood|gandalf|yoda|zeus|satan|dracula)$
        """,
    ),
    # Thinking, saying, wondering: "I guess", "I heard that", "I forgot".
    frame(
        None,
        r"""
        (?:
            think|guess|mean|suppose|believe|feel(?! strongly)|assume|agree|disagree|see|
            hope(?! to)|understand(?! \w+ (?:fluently|well))|
            get(?! (?:motion|car|sea|air|up|migraines|around|anxious|my|paid))|notice|find|
            forget|forgot|remember|doubt|wonder|swear(?! by)|promise|bet|recall|heard|hear|said|
            say|told|tell|asked|ask|tried|
            try(?! to (?:
                    avoid|eat|keep|run|read|exercise|walk|go|work|sleep|get|drink|write|limit
                )
            )|
            thought|knew|meant|expected|noticed|realized|just realized|figured|
            appreciate (?:it|that|your|the|you)|apologize|may|might|could|should|wish|used to
        )\b
        """,
    ),
    # How somebody is at this moment: "I am tired", "I am on a train".
    frame(None, rf"am {ADVERBIAL}(?:an? )?(?:{words.TRANSIENT_STATES})(?![\w-])"),
    # What somebody has for a moment: "I have a question", "I have a cold".
    frame(
        None,
        rf"""
        have (?:
            (?:
                got|a|an|some|another|one|two|three|more|few|quick|small|the|this|these|my|any|
                no|same|following|big|new|other|feature|terrible|bad|slight|weird|strange|
                splitting|really|lot of|long|simple|general|couple of|half|million|ten|job
            ) )*(?:{words.TRANSIENT_THINGS})\b
        (?!.*\b(?:every|each|on (?:mon|tues|wednes|thurs|fri|satur|sun)days)\b)
        """,
    ),
    # What the talk is about: "I have tried everything", "I have to go".
    frame(
        None,
        r"""
        have (?:
            to (?:go|say|admit|run now|leave now|ask|know|agree|check|see|be honest|disagree)|
            been (?:
                trying|thinking|looking|waiting|wondering|getting|having|seeing|meaning|told|
                asked|struggling|reading (?:this|your|the)|debugging|sitting|here|up|busy
            )|
            tried|seen|heard|read|noticed|attached|uploaded|pasted|included|found|had it|
            had enough|never (?:heard|seen|tried|used|thought)|
            no (?:idea|clue|time|doubt|words|problem|intention)|
            not (?:tried|seen|heard|read|decided|found|done|been able)|
            already (?:tried|done|checked|seen|read)|
            just (?:tried|seen|read|noticed|sent|uploaded)
        )\b
        """,
    ),
)
"""Moods, thoughts and what is at hand."""
FIGURES: Final = (
    # What somebody is not: "I am not a robot".
    frame(
        None,
        r"""
        am not an? (?!
            \w+ (?:person|fan|drinker|smoker|eater)|citizen|native|vegetarian|vegan|smoker|
            drinker
        )
        """,
    ),
    # Figures of speech: "I am the one who asked".
    frame(
        None,
        r"""
        am (?:an?|the) (?:\w+ )?
        (?:robot|human|bot|groot|father|queen|king|god|person who|guy who|one)\b(?! of)
        """,
    ),
)
"""What looks like a trade and is none."""
