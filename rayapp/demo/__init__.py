"""The demo: a bilingual conversation and the project's own documents, asked over HTTP."""

from rayapp.demo.runner import run

__all__ = ["run"]
