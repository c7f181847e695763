"""Making stored text harmless inside a prompt: it stays on its line and opens no tag (B-61)."""

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escape_line(text: str) -> str:
    """`text` on one line, with `<`, `>` and `&` written out.

    A closing tag in what a user once said must not end the block it is quoted in.
    """
    return " ".join(text.split()).translate(_ESCAPES)


def escape_lines(text: str) -> list[str]:
    """The lines of `text`, with `<`, `>` and `&` written out and spaces as they are.

    Whatever else ends a line somewhere ends one here, so that none is longer than it looks.
    """
    return [line.translate(_ESCAPES) for line in text.splitlines()]


def unescape(text: str) -> str:
    """What `escape_line` and `escape_lines` wrote out, as it was."""
    for written, meant in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(written, meant)
    return text
