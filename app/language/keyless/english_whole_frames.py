"""Every shape of a whole English clause, in the order in which they are tried."""

from typing import Final

from app.language.keyless.english_bounds import BOUNDS_SAID, BOUNDS_SAID_FIRMLY
from app.language.keyless.english_circumstances import LIFE_SAID, LIFE_SAID_FIRMLY
from app.language.keyless.english_names import NAMES
from app.language.keyless.english_orders import ORDERS
from app.language.keyless.english_phrases import PHRASES
from app.language.keyless.english_sayings import TASTES_SAID, TASTES_SAID_FIRMLY
from app.language.keyless.english_wholes import WholeFrame

WHOLE_FRAMES: Final[tuple[WholeFrame, ...]] = (
    *NAMES,
    *ORDERS,
    *PHRASES,
    *TASTES_SAID,
    *BOUNDS_SAID,
    *LIFE_SAID,
)

FIRM_FRAMES: Final[tuple[WholeFrame, ...]] = (
    *BOUNDS_SAID_FIRMLY,
    *LIFE_SAID_FIRMLY,
    *TASTES_SAID_FIRMLY,
)
"""Those that hold although they sound like hearsay or a guess."""
