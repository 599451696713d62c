"""The demo: a bilingual conversation, asked over HTTP."""

from rayapp.local.demo.material import material_of
from rayapp.local.demo.runner import DEMO_KEY, run

__all__ = ["DEMO_KEY", "material_of", "run"]
