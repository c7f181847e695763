"""How the grammars write their patterns: as text over several lines, an idea to a line."""

import re

from app.language.text.lazy_pattern import lazy_pattern


def joined(text: str) -> str:
    """The pattern in a text: its lines without their indentation, joined, without comments.

    A line that begins with `# ` is a comment. Blanks at the ends of lines are lost, so an
    alternative that begins with one stands behind another in the same line. A text of one line
    stays as it is.
    """
    if "\n" not in text:
        return text
    lines = (line.strip() for line in text.split("\n"))
    return "".join(line for line in lines if not line.startswith("# "))


def compiled(text: str) -> re.Pattern[str]:
    """Compile a pattern that spans lines and does not tell upper from lower case."""
    return lazy_pattern(joined(text), re.IGNORECASE)


def exact(text: str) -> re.Pattern[str]:
    """Compile a pattern that spans lines and tells upper from lower case."""
    return lazy_pattern(joined(text))
