"""Making stored text harmless inside a prompt: it stays on its line and opens no tag (B-61)."""

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escape_line(text: str) -> str:
    """`text` on one line, with `<`, `>` and `&` written out.

    A closing tag in what a user once said must not end the block it is quoted in.
    """
    return " ".join(text.split()).translate(_ESCAPES)
