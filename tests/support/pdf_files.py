"""PDF files by hand: a font that every reader has, lines of a size, nothing else."""

import hashlib
import unicodedata
from collections.abc import Sequence

from bidi.algorithm import get_display

Page = Sequence[tuple[str, float]]
TOP, LEFT, RIGHT, LEADING = 780, 60, 535, 1.2
# Of a letter, in thousandths of its size.
_WIDTH = 500
# Brackets are drawn turned round in Hebrew.
_BRACKETS = "()[]{}<>"


def pdf_of(pages: Sequence[Page], *, title: str = "", author: str = "") -> bytes:
    """Pages of (text, size) lines, Latin letters alone; a page without lines is blank."""
    first = 4
    kids = " ".join(f"{first + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, page in enumerate(pages):
        content = _content(page)
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {first + 2 * n + 1} "
            "0 R /Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        ]
    objects.append(f"<< /Title ({title}) /Author ({author}) >>".encode())
    return _file(objects, f"/Info {len(objects)} 0 R")


def form_pdf(label: str, value: str) -> bytes:
    """A page with a line, and a field with a value beside it, Latin letters alone."""
    content = _content([(label, 11)])
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] >> >>",
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Annots [6 0 R] "
        b"/Resources << /Font << /F1 3 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        f"<< /Type /Annot /Subtype /Widget /FT /Tx /T (field) /V ({value}) /F 4 "
        f"/Rect [{RIGHT - 200} {TOP - 20} {RIGHT} {TOP}] /DA (/F1 11 Tf) >>".encode(),
    ]
    return _file(objects, "")


def encrypted_pdf() -> bytes:
    """One that asks for a password: what its key is made of fits no password."""
    key = hashlib.sha256(b"nobody knows").hexdigest()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [] /Count 0 >>",
        f"<< /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -44 >>".encode(),
    ]
    return _file(objects, "/Encrypt 3 0 R /ID [<00112233445566778899aabbccddeeff> <00>]")


def drawn_pdf(pages: Sequence[Page], *, title: str = "") -> bytes:
    """Pages of (text, size) lines in Hebrew or English, drawn from left to right as the
    bidirectional algorithm says: lines in Hebrew end at the right edge."""
    first = 7
    kids = " ".join(f"{first + 2 * n} 0 R" for n in range(len(pages)))
    letters = sorted({c for page in pages for text, _ in page for c in text + _BRACKETS})
    marks = " ".join(f"{ord(c)} [0]" for c in letters if unicodedata.combining(c))
    # Of a character outside the basic plane, its glyph has the lower half of its number.
    pairs = [f"<{ord(c) & 0xFFFF:04x}> <{c.encode('utf-16-be').hex()}>" for c in letters]
    blocks = (pairs[at : at + 100] for at in range(0, len(pairs), 100))
    names = "\n".join(f"{len(b)} beginbfchar\n{chr(10).join(b)}\nendbfchar" for b in blocks)
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Drawn def "
        "/CMapType 2 def 1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{names}\nendcmap CMapName currentdict /CMap defineresource pop end end"
    ).encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Drawn /Encoding /Identity-H "
        b"/DescendantFonts [4 0 R] /ToUnicode 6 0 R >>",
        f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Drawn /DW {_WIDTH} /W [{marks}] "
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> "
        "/FontDescriptor 5 0 R >>".encode(),
        b"<< /Type /FontDescriptor /FontName /Drawn /Flags 4 /FontBBox [0 -200 1000 900] "
        b"/ItalicAngle 0 /Ascent 900 /Descent -200 /CapHeight 700 /StemV 80 >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(cmap), cmap),
    ]
    for n, page in enumerate(pages):
        content = _drawn(page)
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {first + 2 * n + 1} "
            "0 R /Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        ]
    told = title.encode("utf-16-be").hex()
    objects.append(f"<< /Title <feff{told}> >>".encode())
    return _file(objects, f"/Info {len(objects)} 0 R")


def _drawn(page: Page) -> bytes:
    y, lines = float(TOP), []
    for text, size in page:
        y -= LEADING * size
        hebrew = next((c >= "\u0590" for c in text if c.isalpha()), False)
        shown = get_display(text, base_dir="R" if hebrew else "L")
        width = sum(not unicodedata.combining(c) for c in shown) * size * _WIDTH / 1000
        x = RIGHT - width if hebrew else LEFT
        # A point stands in the middle of the letter that comes next.
        glyphs = "".join(
            f"{-_WIDTH // 2} <{ord(c):04x}> {_WIDTH // 2} "
            if unicodedata.combining(c)
            else f"<{ord(c) & 0xFFFF:04x}>"
            for c in shown
        )
        lines.append(f"BT /F1 {size} Tf 1 0 0 1 {x:.1f} {y:.1f} Tm [{glyphs}] TJ ET")
    return "\n".join(lines).encode("latin-1")


def _content(page: Page) -> bytes:
    y, lines = float(TOP), []
    for text, size in page:
        y -= LEADING * size
        lines.append(f"BT /F1 {size} Tf 1 0 0 1 {LEFT} {y:.1f} Tm ({text}) Tj ET")
    return "\n".join(lines).encode("latin-1")


def _file(objects: Sequence[bytes], trailer: str) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    root = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\n"
    return bytes(out) + root.encode() + b"startxref\n%d\n%%%%EOF\n" % table
