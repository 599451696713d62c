"""Other spellings of a path, as an attacker or a careless client sends them."""

from collections.abc import Callable, Mapping

FULLWIDTH = ord("ａ") - ord("a")


def _percent(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def _parts(path: str) -> tuple[str, str]:
    folder, _, last = path.rpartition("/")
    return folder, last


def _last(change: Callable[[str], str]) -> Callable[[str], str]:
    """A change of the last part of a path."""

    def changed(path: str) -> str:
        folder, last = _parts(path)
        return f"{folder}/{change(last)}"

    return changed


def _wide(text: str) -> str:
    return _percent("".join(chr(ord(c) + FULLWIDTH) if c.isalpha() else c for c in text))


def _after(suffix: str) -> Callable[[str], str]:
    return lambda path: path + suffix


SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "line feed after": _after("%0a"),
    "carriage return after": _after("%0d"),
    "both after": _after("%0d%0a"),
    "two line feeds after": _after("%0a%0a"),
    "tab after": _after("%09"),
    "vertical tab after": _after("%0b"),
    "space after": _after("%20"),
    "null after": _after("%00"),
    "next line after": _after("%c2%85"),
    "line separator after": _after("%e2%80%a8"),
    "encoded slash after": _after("%2f"),
    "slash after": _after("/"),
    "slashes after": _after("//"),
    "dot after": _after("."),
    "dot segment after": _after("/."),
    "dots segment after": _after("/x/.."),
    "encoded dots after": _after("/x/%2e%2e"),
    "encoded dots and slash after": _after("%2f%2e%2e%2f%2e%2e"),
    "parameters after": _after(";a=b"),
    "encoded question mark after": _after("%3f"),
    "encoded hash after": _after("%23"),
    "another kind after": _after(".json"),
    "invalid UTF-8 after": _after("%ff"),
    "overlong slash after": _after("%c0%af"),
    "encoded twice": _after("%250a"),
    "empty query": _after("?"),
    "slashes before": lambda path: f"/{path}",
    "line feed before": lambda path: f"/%0a{path}",
    "dots before": lambda path: f"/healthz/..{path}",
    "encoded dots before": lambda path: f"/healthz/%2e%2e{path}",
    "doubled slashes": lambda path: path.replace("/", "//"),
    "encoded slashes": lambda path: "/" + path[1:].replace("/", "%2f"),
    "all slashes encoded": lambda path: path.replace("/", "%2f"),
    "backslashes": lambda path: "/" + path[1:].replace("/", "%5c"),
    "upper case": str.upper,
    "encoded letters": _percent,
    "encoded last part": _last(_percent),
    "full width": _last(_wide),
    "line feed within": _last(lambda last: f"{last[:1]}%0a{last[1:]}"),
    "line feed before the last part": _last(lambda last: f"%0a{last}"),
    "null within": _last(lambda last: f"{last[:1]}%00{last[1:]}"),
}
