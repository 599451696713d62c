"""PDF files by hand: a font that every reader has, lines of a size, nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

Page = Sequence[tuple[str, float]]
TOP, LEFT, LEADING = 780, 60, 1.2


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


def encrypted_pdf() -> bytes:
    """One that asks for a password: what its key is made of fits no password."""
    key = hashlib.sha256(b"nobody knows").hexdigest()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [] /Count 0 >>",
        f"<< /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -44 >>".encode(),
    ]
    return _file(objects, "/Encrypt 3 0 R /ID [<00112233445566778899aabbccddeeff> <00>]")


def _content(page: Page) -> bytes:
    y, lines = float(TOP), []
    for text, size in page:
        lines.append(f"BT /F1 {size} Tf 1 0 0 1 {LEFT} {y:.1f} Tm ({text}) Tj ET")
        y -= LEADING * size
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
