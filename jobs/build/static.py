"""Makes a static model artefact from a Model2Vec folder. The same source gives the same bytes.

    python -m jobs.build.static --source FOLDER --out rayapp/inference/models/potion-base-8m-int8

FOLDER holds `model.safetensors` (one float32 tensor `embeddings` `[V, D]`) and `tokenizer.json`.
The format of the result is described in `rayapp.inference.backends.static_model`.
"""

import hashlib
import io
import json
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.ending import command_parser

FORMAT = 1
INT8_MAX = 127
# The zip entries carry a fixed time, so that two builds are equal byte for byte.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def read_embeddings(path: Path) -> npt.NDArray[np.float32]:
    """The tensor `embeddings` of a safetensors file: 8-byte header size, JSON header, raw bytes."""
    raw = path.read_bytes()
    (header_size,) = struct.unpack("<Q", raw[:8])
    entry = json.loads(raw[8 : 8 + header_size])["embeddings"]
    if entry["dtype"] != "F32":
        raise SystemExit(f"{path.name}: embeddings are {entry['dtype']}, expected F32.")
    begin, end = (8 + header_size + offset for offset in entry["data_offsets"])
    return np.frombuffer(raw[begin:end], dtype="<f4").reshape(entry["shape"])


def quantise(
    vectors: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """int8 rows `[V, D]` and float32 scales `[V]` with `vectors ≈ rows * scales[:, None]`.

    One scale per row: the norms of token vectors differ by a factor of 250, they are the weights.
    """
    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / INT8_MAX
    rows = np.rint(vectors / scales[:, None]).astype(np.int8)
    return rows, scales.astype("<f4")


def write_npz(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """An uncompressed .npz: deflate gives other bytes with another zlib."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", ZIP_TIME), buffer.getvalue())


def build(source: Path, out: Path, *, name: str, origin: str, langs: list[str]) -> dict[str, Any]:
    """Write `vectors.npz`, `tokenizer.json` and `metadata.json` to `out`; returns the metadata."""
    vectors = read_embeddings(source / "model.safetensors")
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    rows, scales = quantise(vectors)
    out.mkdir(parents=True, exist_ok=True)
    write_npz(out / "vectors.npz", {"vectors": rows, "scales": scales})
    shutil.copyfile(source / "tokenizer.json", out / "tokenizer.json")
    metadata = {
        "format": FORMAT,
        "name": name,
        "dims": vectors.shape[1],
        "vocabulary": vectors.shape[0],
        "langs": langs,
        "tokenizer": {"kind": "tokenizers-json", "file": "tokenizer.json"},
        "unknown_token": tokenizer["model"]["unk_token"],
        "licence": "MIT",
        "origin": origin,
        "origin_sha256": {
            file: hashlib.sha256((source / file).read_bytes()).hexdigest()
            for file in ("model.safetensors", "tokenizer.json")
        },
        "sha256": {"vectors.npz": hashlib.sha256((out / "vectors.npz").read_bytes()).hexdigest()},
    }
    text = json.dumps(metadata, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    (out / "metadata.json").write_text(text, encoding="utf-8")
    return metadata


def main() -> None:
    parser = command_parser("jobs.build.static", __doc__, out=False)
    parser.add_argument("--source", type=Path, required=True, help="Model2Vec folder")
    parser.add_argument("--out", type=Path, required=True, help="artefact folder")
    parser.add_argument("--name", default="potion-base-8m-int8", help="model name in the index")
    parser.add_argument("--origin", default="minishlab/potion-base-8M", help="model it came from")
    parser.add_argument("--langs", nargs="+", default=["en"], help="languages it knows")
    args = parser.parse_args()
    metadata = build(
        args.source, args.out, name=args.name, origin=args.origin, langs=list(args.langs)
    )
    print(json.dumps(metadata, indent=2, sort_keys=True))


if __name__ == "__main__":
    main()
