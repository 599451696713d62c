"""The console in a real browser. Needs `playwright` (dev extra) and a chromium of the machine."""

import importlib.util
import shutil

INSTALL = "apt-get install chromium"


def chromium() -> str | None:
    """The browser on PATH."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def missing_browser() -> list[str]:
    """What these tests need and is not here; while there is any, none of them is collected."""
    found = {"chromium": chromium(), "playwright": importlib.util.find_spec("playwright")}
    return [name for name, there in found.items() if not there]
