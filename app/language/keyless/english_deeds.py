"""What somebody says in English that they did once, do often, or have stopped doing."""

from typing import Final

from app.language.keyless import english_verbs as verbs
from app.language.keyless import english_words as words
from app.language.keyless.english_frames import ADVERBIAL, frame
from app.language.keyless.english_lives import work_and_place
from app.language.keyless.patterns import compiled

ENDINGS: Final = (
    # What somebody gave up: "I stopped smoking".
    frame(
        "fact",
        r"""
        (?:have )?(?:just |finally |recently )?(?:stopped|quit|gave up|given up) (?:
            working (?:at|for|as|in)|living|playing|smoking|drinking|eating|vaping|running|
            using|teaching|studying|going to|doing|learning|alcohol|coffee|meat|sugar|caffeine|
            cigarettes|dairy|gluten|smoking|social media
        )\b(?! (?:it|this|that)\b)
        """,
        may_retract=True,
    ),
)
EVENTS: Final = (
    # A new job of which nothing is said.
    frame(None, r"got (?:a|the) (?:new )?(?:job|offer|promotion|raise)$"),
    # What happened once: "I graduated in 2012", "I broke my arm".
    frame(
        "event",
        rf"""
        (?:have )?(?:just |finally |recently |also |once |officially |successfully |already )*
        (?:{verbs.EVENT_VERBS})(?! (?:it|this file|the file|the page|the error|an error)\b)
        (?![\w-])
        """,
        split=work_and_place,
    ),
)
HABITS: Final = (
    # What is done again and again: "I often swim", "I never skip breakfast".
    frame(
        "habit",
        rf"""
        (?:{words.OFTEN}) {ADVERBIAL}(?!{words.MUSING})(?:do not |am (?!\w+ to\b))?[a-z]+
        (?<!ed)(?<!s)\b
        """,
    ),
    # What is not done, or under way, again and again: "I do not eat on Fridays".
    frame(
        "habit",
        rf"""
        (?:do not|will|am|have been) {ADVERBIAL}(?:(?:{verbs.HABIT_VERBS})\b(?! to\b)|\w+ing\b)
        """,
        lead=compiled(
            rf"""
            \b(?:{words.RECURRING})(?!\w)(?!.*\b(?:error|crash|crashes|fails|bug|warning)\b)
            """
        ),
    ),
    # The same with the frequency behind: "I swim every day".
    frame(
        "habit",
        rf"(?!have (?:always|never|been|had|to)\b)(?:{verbs.HABIT_VERBS})(?![\w-])",
        lead=compiled(rf"\b(?:{words.RECURRING})(?!\w)"),
    ),
    # Habits that need no frequency: "I cycle to work".
    frame("habit", rf"(?:{verbs.STEADY_HABITS})(?! (?:it|this)\b)", may_retract=True),
)
