"""What reading texts needs first, made before somebody waits for it."""

from app.language.text.lazy_pattern import compile_patterns
from app.language.text.normal_forms import simplify
from app.language.text.secret_patterns import formats


def load_tables() -> None:
    """Compile all patterns, and load those of secrets and the table of simplified characters; to
    be run in a thread beside the start of a server, or before its processes are forked.
    """
    compile_patterns()
    formats()
    simplify("國")
