"""Texts of the days before Unicode are read, short ones too; damaged ones are not."""

from random import Random

import pytest

from app.language.parsing.decoding import SAMPLE_BYTES, decoded
from app.language.parsing.documents import ParseError

RUSSIAN = "Привет, как дела? Насос нужно чистить каждую неделю."
CHINESE = "退款需要五个工作日。客户必须提供订单号码,否则我们不能处理退款申请。"
ENGLISH = "The pump runs and the filter is changed each month."

TEXTS = [
    (RUSSIAN, ("cp1251", "koi8-r", "cp866", "iso8859-5")),
    ("Привет, мир", ("cp1251", "koi8-r")),
    ("привет", ("cp1251", "koi8-r")),
    ("ВНИМАНИЕ! ОПАСНО", ("cp1251", "koi8-r")),
    ("Договор № 5 от «12» мая — ООО «Ромашка»", ("cp1251",)),
    ("Повернення коштів триває п'ять днів, її їжак ґанок.", ("cp1251", "koi8-u")),
    (CHINESE, ("gb18030", "gbk", "gb2312")),
    ("你好", ("gb18030",)),
    ("你好, 世界", ("gb18030",)),
    ("退款 refund 需要五个 days, 型号A100的水泵。", ("gb18030",)),
    ("退款需要五個工作日。客戶必須提供訂單號碼。", ("big5",)),
    ("安裝手冊：請先關閉電源,再打開蓋子。", ("big5", "gbk")),
    ("返金には五営業日かかります。注文番号が必要です。", ("shift_jis", "euc-jp")),
    ("カタカナだけ", ("shift_jis", "euc-jp")),
    ("환불에는 영업일 기준 5일이 걸립니다.", ("euc-kr", "cp949")),
    ("Η επιστροφή χρημάτων διαρκεί πέντε ημέρες.", ("cp1253", "iso8859-7")),
    ("החזר כספי אורך חמישה ימי עסקים.", ("cp1255", "iso8859-8")),
    ("تستغرق عملية استرداد الأموال خمسة أيام عمل.", ("cp1256",)),
    ("การคืนเงินใช้เวลาห้าวันทำการ", ("cp874",)),
    ("Pump A läuft.", ("latin-1",)),
    ("é", ("latin-1",)),
    ("¿Qué? ¡Sí!", ("latin-1",)),
    ("L'ÉTÉ À LA PLAGE, GARÇON!", ("latin-1",)),
    ("naïve café – “quoted” 25€ 5°C m² ½ ©2024 Acme®", ("cp1252",)),
    ("Señor Muñoz; Größe; façade; smörgåsbord; coração", ("cp1252",)),
    ("Þetta er íslenska, góðan daginn.", ("cp1252",)),
    ("Zażółć gęślą jaźń.", ("cp1250", "iso8859-2")),
    ("Příliš žluťoučký kůň úpěl ďábelské ódy.", ("cp1250",)),
    ("İade işlemi beş iş günü sürer.", ("cp1254",)),
    ("Grąžinimas trunka penkias darbo dienas.", ("cp1257",)),
]


def read(content: bytes) -> str | None:
    try:
        return decoded(content)
    except ParseError:
        return None


@pytest.mark.parametrize(
    ("text", "encoding"), [(text, encoding) for text, encodings in TEXTS for encoding in encodings]
)
def test_texts_are_read(text: str, encoding: str) -> None:
    assert read(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(RUSSIAN, "koi8-r"), (CHINESE, "gb18030"), (ENGLISH + " Größe.", "latin-1")],
)
def test_long_texts_are_read_as_short_ones_are(text: str, encoding: str) -> None:
    long = "\n".join([text] * (2 * SAMPLE_BYTES // len(text.encode(encoding))))
    assert read(long.encode(encoding)) == long


def flipped(text: bytes, number: int, chance: Random) -> bytes:
    damaged = bytearray(text)
    for place in chance.sample(range(len(damaged)), number):
        damaged[place] = chance.randrange(128, 256)
    return bytes(damaged)


@pytest.mark.parametrize("texts", [25, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("any bytes", lambda chance: chance.randbytes(chance.randint(30, 400))),
        (
            "no letters of ASCII",
            lambda chance: bytes(chance.choices(range(128, 256), k=chance.randint(30, 200))),
        ),
        (
            "no controls",
            lambda chance: bytes(chance.choices([*range(32, 127), *range(128, 256)], k=100)),
        ),
        ("UTF-8", lambda chance: flipped(CHINESE.encode() * 2, 20, chance)),
        ("UTF-8, Cyrillic", lambda chance: flipped(RUSSIAN.encode() * 2, 20, chance)),
        ("KOI8", lambda chance: flipped(RUSSIAN.encode("koi8-r") * 2, 20, chance)),
        ("GB18030", lambda chance: flipped(CHINESE.encode("gb18030") * 2, 25, chance)),
        ("English", lambda chance: flipped(ENGLISH.encode() * 3, 20, chance)),
    ],
)
def test_damage_is_no_text(kind: str, made, texts: int) -> None:
    chance = Random(kind)
    accepted = [text for text in (read(made(chance)) for _ in range(texts)) if text is not None]
    # Now and then bytes fall into place.
    assert len(accepted) <= 1, accepted


def test_damage_behind_the_beginning_counts_too() -> None:
    lines = f"{RUSSIAN}\n".encode("cp1251") * (SAMPLE_BYTES // len(RUSSIAN))
    assert read(lines + b"\x98\x01\n") is None
    lines = f"{ENGLISH} Größe.\n".encode("latin-1") * (SAMPLE_BYTES // len(ENGLISH))
    assert read(lines + b"\x07\n") is None


@pytest.mark.parametrize(
    "name",
    ["undefined", "idna", "punycode", "unicode-escape", "UNICODE_ESCAPE", "utf-7", "rot13", "hex",
     "no-such-one"],
)  # fmt: skip
def test_a_page_that_declares_no_encoding_of_texts_is_refused(name: str) -> None:
    page = f'<meta charset="{name}"><p>\xe9t\xe9</p>'.encode("latin-1")
    with pytest.raises(ParseError) as refused:
        decoded(page, declares=True)
    assert refused.value.code == "encoding"
