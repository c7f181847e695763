"""The order in which what follows "I" is tried on the frames: the first that fits decides."""

from typing import Final

from app.language.keyless.english_deeds import ENDINGS, EVENTS, HABITS
from app.language.keyless.english_frames import Frame
from app.language.keyless.english_limits import KEPT, LIMITS
from app.language.keyless.english_lives import (
    CIRCUMSTANCES,
    DOINGS,
    KIN_AND_THINGS,
    NAMES_AND_AGES,
    PLACES_AND_WORK,
    STATES,
)
from app.language.keyless.english_plans import DECISIONS, LEARNING, PLANS, SETTLED, UNDER_WAY
from app.language.keyless.english_tastes import FOUND, NEVER_TAKEN, SKILLS, TASTES
from app.language.keyless.english_vetoes import FIGURES, PASSING

FRAMES: Final[tuple[Frame, ...]] = (
    # These begin like a mood or a thought, and are none.
    *SETTLED,
    *UNDER_WAY,
    *FOUND,
    *NEVER_TAKEN,
    *CIRCUMSTANCES,
    *KEPT,
    *PASSING,
    *NAMES_AND_AGES,
    *LIMITS,
    *PLACES_AND_WORK,
    *PLANS,
    *DECISIONS,
    *TASTES,
    *SKILLS,
    *ENDINGS,
    *EVENTS,
    *STATES,
    *LEARNING,
    *FIGURES,
    *KIN_AND_THINGS,
    *HABITS,
    *DOINGS,
)
