"""Bytes of a text file as text, in whatever encoding they are; half a text is no text. Pure.

Almost any bytes are valid in most encodings of the days before Unicode. So a reading counts only if
its words are words of one script, in letters and characters that people use: that tells encodings
apart, and damage from text.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from charset_normalizer import from_bytes

from app.language.parsing.documents import ParseError

COMMON: Final = "cp1252"

_DAMAGE: Final = 0.1
"""The share of what is beyond ASCII that may stand where no reader would expect it."""
_WESTERN: Final = 0.3
"""In Cyrillic, Greek or Thai most letters are beyond ASCII; in German or French one in ten is."""
_COVERED: Final = 0.5
_FREQUENT_SHARE: Final = 0.6
_BONUS: Final = 0.2
_FEW: Final = 5
"""Letters of which no statistics tell anything."""

# Controls, characters of nobody, and the character that stands for what could not be read.
BROKEN: Final = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd]")
_BEYOND = re.compile("[^\x00-\x7f]")
_WORD = re.compile("[^\\W\\d_\xb2\xb3\xb9\xbc-\xbe]+")
_ODD_CHAR = re.compile(
    # All but letters, their marks, East Asian characters, punctuation, currencies, arrows and
    # mathematics.
    "[^\\w\x00-\x7f\xa0-\xbf\xd7\xf7\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u060c\u061b\u061f"
    "\u0e00-\u0e7f\u2010-\u205e\u20a0-\u20c0\u2100-\u22ff\u3000-\u30ff\u2500\u25a0-\u25ff\uff00-\uffee]"
)
# A character in the middle of a word, other than those of "l’été", "São-João" and "col·lega".
_INSIDE = re.compile(
    "(?<=[^\\W\\d_])[\xa1-\xa9\xab-\xac\xae-\xb1\xb4-\xb6\xb8\xbb-\xbf\xd7\xf7\u2020-\u2122](?=[^\\W\\d_])"
)
_CASELESS: Final = frozenset("ßªº")
_CASES_MIXED = re.compile("lU|.Ul")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff01-\uff5e\uff61-\uff9f]")
_KANA = re.compile("[\u3041-\u30ff]")
_HALF_KANA = re.compile("[\uff61-\uff9f]")
_SPACED = re.compile("[\u4e00-\u9fff][!?.,;:]? +[\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_SCRIPTS: Final = {
    "latin": re.compile("[a-zA-Z\xaa\xba\xc0-\u024f]+"),
    "cyrillic": re.compile("[\u0400-\u04ff]+"),
    "greek": re.compile("[\u0386-\u03ce]+"),
    "hebrew": re.compile("[\u05d0-\u05ea]+"),
    "arabic": re.compile("[\u0620-\u064a\u0671-\u06d3]+"),
    "thai": re.compile("[\u0e01-\u0e4e]+"),
}
# Some three quarters of the letters of any text in such a script.
_FREQUENT: Final = {
    "cyrillic": frozenset("оеаинтсрвлкмдпуыіяьз"),
    "greek": frozenset("αοιετσνηυρπκμλςίάόέή"),
    "hebrew": frozenset("יוהלאמרתבשנעםדחק"),
    "arabic": frozenset("االيمونرتبلهدعسكفةأ"),
    "thai": frozenset("านรอกงเมยลวดทสตะคหป"),
}
_SYLLABLES: Final = frozenset("이다는에을를의가하고은도지로한사서시기어리자나일인대")
# Letters beyond ASCII of languages, by the encoding in which they were written.
_LANGUAGES: Final = {
    "cp1252": ("äöüß", "éèêëàâçîïôùûœæ", "áéíóúñüç", "ãáâàçéêíóôõú", "åäöæøé", "áðéíóúýþæö"),
    "cp1250": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíľĺňóôŕšťúýž", "áéíóöőúüű", "ăâîșţş", "čćđšž"),
    "iso8859-2": ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áéíóöőúüű"),
    "cp1254": ("çğıöşüâîûİ",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"),
}
_ALPHABETS: Final = (
    ("cp1251", "cyrillic"), ("koi8-u", "cyrillic"), ("cp866", "cyrillic"),
    ("iso8859-5", "cyrillic"), ("cp1253", "greek"), ("iso8859-7", "greek"), ("cp1255", "hebrew"),
    ("iso8859-8", "hebrew"), ("cp1256", "arabic"), ("cp874", "thai"),
)  # fmt: skip
_Codes = tuple[tuple[int, int], ...]
# Lead bytes of the characters in use, and of punctuation.
_IN_USE: Final[dict[str, _Codes]] = {
    "gb2312": ((0xB0, 0xD7), (0xA1, 0xA3)),
    "big5": ((0xA4, 0xC6), (0xA1, 0xA3)),
    "cp932": ((0x88, 0x97), (0x81, 0x83)),
    "euc_jp": ((0xB0, 0xCF), (0xA1, 0xA5)),
    "euc_kr": ((0xB0, 0xC8), (0xA1, 0xA3)),
}


def guessed(sample: bytes) -> str | None:
    """The encoding that a text is in; None where it reads as a text in none.

    Args:
        sample: the text or its beginning, without a character cut in two.

    """
    fits = [(fit, encoding) for encoding, fit in _fits(sample) if fit is not None]
    if fits:
        # Of those that fit equally well the first is the most common.
        return max(fits, key=lambda fitting: fitting[0])[1]
    guess = from_bytes(sample).best()
    if guess is None or not _is_text(str(guess)):
        return None
    wide = "".join(_WIDE.findall(str(guess)))
    used = max(_in_use(wide, encoding) for encoding in _IN_USE) if wide else 1.0
    return guess.encoding if used >= 1 - _DAMAGE else None


def _fits(sample: bytes) -> Iterator[tuple[str, float | None]]:
    """How well each encoding fits, about 0 to 1; None where it does not."""
    for encoding, fit in (
        ("gb18030", _fit_chinese), ("big5", _fit_taiwanese), ("cp932", _fit_japanese),
        ("euc_jp", _fit_japanese), ("cp949", _fit_korean),
    ):  # fmt: skip
        yield encoding, _fit(sample, encoding, fit)
    for encoding in _LANGUAGES:
        yield encoding, _fit(sample, encoding, _fit_latin)
    for encoding, script in _ALPHABETS:
        yield encoding, _fit(sample, encoding, partial(_fit_script, script=script))


def _fit(sample: bytes, encoding: str, fit: Callable[[str, str], float | None]) -> float | None:
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError:
        return None
    return fit(text, encoding) if _is_text(text) else None


def _is_text(text: str) -> bool:
    """Whether its words and characters stand as people write them."""
    if BROKEN.search(text):
        return False
    words = Counter(word for word in _WORD.findall(text) if not word.isascii())
    faults = sum(number for word, number in words.items() if not _is_word(word))
    odd = len(_ODD_CHAR.findall(text))
    inside = len(_INSIDE.findall(text))
    return faults + odd + inside <= _DAMAGE * (words.total() + odd + inside)


def _is_word(word: str) -> bool:
    """Whether letters of one script follow each other as they do in words."""
    if _WIDE.search(word):
        return True
    if not any(script.fullmatch(word) for script in _SCRIPTS.values()):
        return False
    cases = "".join("lU"[char.isupper()] for char in word if char not in _CASELESS)
    return _CASES_MIXED.search(cases) is None


def _fit_latin(text: str, encoding: str) -> float | None:
    letters = sum(map(len, _WORD.findall(text)))
    # The one character that becomes two in lower case is Turkish.
    beyond = [
        char if char == "İ" else char.lower() for char in _BEYOND.findall(text) if char.isalpha()
    ]
    most = _WESTERN if encoding == COMMON else 2 * _WESTERN
    if len(beyond) > max(most * letters, 2) or not all(
        _SCRIPTS["latin"].fullmatch(char) for char in set(beyond)
    ):
        return None
    covered = max(
        sum(char in language for char in beyond) / max(len(beyond), 1)
        for language in map(set, _LANGUAGES[encoding])
    )
    covered = covered if beyond else 1.0
    if covered < _COVERED:
        return None
    return covered + (_BONUS if encoding == COMMON else 0)


def _fit_script(text: str, _encoding: str, *, script: str) -> float | None:
    letters = [char for char in _BEYOND.findall(text) if char.isalpha()]
    own = [char for char in letters if _SCRIPTS[script].fullmatch(char)]
    if len(own) < _FEW or len(own) < (1 - _DAMAGE) * len(letters):
        return None
    frequent = sum(char.lower() in _FREQUENT[script] for char in own) / len(own)
    # Shouted from end to end it is more likely another encoding, whose cases are the other way.
    shouted = sum(char.isupper() for char in own) / len(own)
    return frequent + _BONUS * (1 - shouted) if frequent >= _FREQUENT_SHARE else None


def _fit_chinese(text: str, _encoding: str) -> float | None:
    fit = _fit_wide(text, "gb2312")
    # Words with spaces between them are more likely those of an alphabet.
    return None if fit is None else fit - _BONUS * (_SPACED.search(text) is not None)


def _fit_taiwanese(text: str, _encoding: str) -> float | None:
    fit = _fit_wide(text, "big5")
    return None if fit is None else fit - _BONUS / 4


def _fit_japanese(text: str, encoding: str) -> float | None:
    wide, half = len(_WIDE.findall(text)), len(_HALF_KANA.findall(text))
    if len(_KANA.findall(text)) < _BONUS * wide or half > _DAMAGE * wide:
        return None
    fit = _fit_wide(text, encoding)
    return None if fit is None else fit + _BONUS


def _fit_korean(text: str, _encoding: str) -> float | None:
    wide, syllables = len(_WIDE.findall(text)), _HANGUL.findall(text)
    frequent = sum(char in _SYLLABLES for char in syllables)
    if len(syllables) < (1 - _DAMAGE) * wide or frequent < _BONUS * wide:
        return None
    fit = _fit_wide(text, "euc_kr")
    return None if fit is None else fit + _BONUS


def _fit_wide(text: str, encoding: str) -> float | None:
    beyond = "".join(_BEYOND.findall(text))
    used = _in_use(beyond, encoding)
    return used if used >= 1 - _DAMAGE else None


def _in_use(chars: str, encoding: str) -> float:
    """The share of characters that people use among those of an encoding."""
    leads = [
        code[0] for code in (char.encode(encoding, "ignore") for char in chars) if len(code) == 2
    ]
    used = sum(any(low <= lead <= high for low, high in _IN_USE[encoding]) for lead in leads)
    return used / max(len(chars), 1)


SAMPLE_BYTES: Final = 128 * 1024
"""How much of a file tells its encoding."""

_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_NO_ENCODINGS = frozenset(
    {"unicode_escape", "raw_unicode_escape", "punycode", "idna", "undefined", "utf_7"}
)
"""Names that Python decodes, to something else than what the bytes say."""
_DECLARED = re.compile(rb"""charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE)

_UNREADABLE = "It is not text in any encoding that we know, or parts of it are damaged."
_CONTROL: Final = frozenset(range(32)) - {9, 10, 12, 13, 27}


def decoded(content: bytes, *, declares: bool = False) -> str:
    """The whole text, with the line ends of Unix.

    Args:
        content: the file.
        declares: whether its beginning may name the encoding, as HTML does.

    Raises:
        ParseError: `encoding`; a text with damaged places is refused as a whole.

    """
    try:
        text = content.decode(_encoding(content, declares=declares))
    except (UnicodeError, LookupError):
        raise ParseError("encoding", _UNREADABLE) from None
    if "\x00" in text:
        raise ParseError("encoding", _UNREADABLE)
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def looks_like_text(head: bytes) -> bool:
    """Whether the beginning of a file can be text of some encoding."""
    if any(head.startswith(mark) for mark, _ in _MARKS) or _wide(head) is not None:
        return True
    controls = sum(byte in _CONTROL for byte in head)
    return controls * 100 <= len(head)


def _encoding(content: bytes, *, declares: bool) -> str:
    """The name of the encoding that a text is in.

    Raises:
        ParseError: `encoding`; it is no text, or damaged.

    """
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    wide = marked or _wide(content[:SAMPLE_BYTES])
    if wide is not None:
        return wide
    damage = _damage(content)
    if damage is None:
        return "utf-8"
    declared = _DECLARED.search(content[:4096]) if declares else None
    if declared is not None:
        name = declared[1].decode("ascii")
        if name.lower().replace("-", "_") in _NO_ENCODINGS:
            raise ParseError("encoding", _UNREADABLE)
        return name
    if damage:
        raise ParseError("encoding", _UNREADABLE)
    return _guessed(content)


def _guessed(content: bytes) -> str:
    """An encoding of the days before Unicode. Raises ParseError."""
    # Without a cut in the middle of a character: both kinds of line end are single bytes there.
    sample = content[:SAMPLE_BYTES]
    if len(content) > SAMPLE_BYTES:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    encoding = guessed(sample)
    if encoding is None or BROKEN.search(content.decode(encoding)):
        raise ParseError("encoding", _UNREADABLE)
    return encoding


def _damage(content: bytes) -> bool | None:
    """None for UTF-8; else whether it is UTF-8 with damaged places rather than another encoding."""
    try:
        content.decode()
    except UnicodeDecodeError:
        pass
    else:
        return None
    kept = content.decode(errors="ignore")
    bad = len(content) - len(kept.encode())
    return sum(char > "\x7f" for char in kept) > 3 * bad


def _wide(head: bytes) -> str | None:
    """UTF-16 without a mark: every other byte of Western text is zero."""
    pairs = len(head) // 2
    if pairs < 2:
        return None
    even, odd = head[0 : pairs * 2 : 2].count(0), head[1 : pairs * 2 : 2].count(0)
    if odd * 10 >= pairs * 4 and even * 10 < pairs:
        return "utf-16-le"
    if even * 10 >= pairs * 4 and odd * 10 < pairs:
        return "utf-16-be"
    return None
