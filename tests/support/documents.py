"""Files of every kind that is read, made in code."""

import zipfile
from io import BytesIO

import docx
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def pdf(*pages: str, password: str | None = None) -> bytes:
    """A PDF with a line of text on each page; an empty one has none."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
    for text in pages:
        page = writer.add_blank_page(width=600, height=800)
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        lines = " T* ".join(f"({line}) Tj" for line in text.split("\n")) if text else ""
        stream.set_data(f"BT /F1 12 Tf 14 TL 50 700 Td {lines} ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password is not None:
        writer.encrypt(password)
    made = BytesIO()
    writer.write(made)
    return made.getvalue()


def word(*paragraphs: str, heading: str = "Manual") -> bytes:
    """A Word document with a heading, paragraphs and a small table."""
    document = docx.Document()
    document.add_heading(heading, 1)
    for text in paragraphs:
        document.add_paragraph(text)
    table = document.add_table(2, 2)
    for row, cells in enumerate((("part", "price"), ("bolt", "3 EUR"))):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    made = BytesIO()
    document.save(made)
    return made.getvalue()


def bomb(megabytes: int) -> bytes:
    """A Word document of some kilobytes that unpacks to many megabytes."""
    made = BytesIO(word("Boo."))
    with zipfile.ZipFile(made, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/image1.bmp", b"\0" * (megabytes * 1024 * 1024))
    return made.getvalue()
