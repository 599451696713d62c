"""The demo: a bilingual conversation, asked over HTTP."""

from rayapp.demo.runner import run

__all__ = ["run"]
