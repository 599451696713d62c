"""Limits for a machine that has other work to do: what is answered is tested, not when."""

from typing import Any

from rayapp.core.settings.model import Settings

# By section and name, seconds. Most are a tenth of a second to two seconds as shipped.
WIDE = {
    ("context", "timeout_s"): 10.0,
    ("embedding", "query_timeout_s"): 30.0,
    ("graph", "priors_timeout_s"): 5.0,
    ("hooks", "reaction_timeout_s"): 10.0,
    ("reranker", "timeout_s"): 30.0,
}


def patient(settings: Settings) -> Settings:
    """With wide limits where the test that made them names none: those are left as they are."""
    changed: dict[str, Any] = {}
    for (section, name), wide in WIDE.items():
        part = changed.get(section, getattr(settings, section))
        if getattr(part, name) == type(part).model_fields[name].default:
            changed[section] = part.model_copy(update={name: wide})
    return settings.model_copy(update=changed)
