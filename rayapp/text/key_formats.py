"""Keys that their providers gave a form of its own, as a table: what begins them, and what follows.

Sources: the providers' pages on the formats of their tokens, and the rules of gitleaks (MIT).
"""

import re

_A, _W = "[A-Za-z0-9]", "[A-Za-z0-9_-]"
_HEX = "[0-9a-f]"
# Nothing of the same kind follows: the form has this many characters and no more.
_END = "(?![A-Za-z0-9])"

_FORMATS: tuple[tuple[str, str], ...] = (
    ("(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|ABIA|ACCA)", f"[A-Z0-9]{{16}}{_END}"),  # AWS
    ("gh[pousr]_", f"{_A}{{30,255}}"),  # GitHub
    ("github_pat_", "[A-Za-z0-9_]{22,255}"),
    ("gl(?:pat|dt|rt|ptt|cbt|ft|soat|agent|imt)-", f"{_W}{{20,255}}"),  # GitLab
    ("xox[abeoprs]-", "[A-Za-z0-9-]{10,255}"),  # Slack
    ("xapp-", "[A-Za-z0-9-]{10,255}"),
    ("AIza", f"{_W}{{35}}"),  # Google
    (r"ya29\.", f"{_W}{{20,}}"),
    ("GOCSPX-", f"{_W}{{20,}}"),
    ("(?:sk|rk|pk)_(?:live|test)_", f"{_A}{{16,}}"),  # Stripe
    ("whsec_", "[A-Za-z0-9+/=]{24,}"),
    ("rk_", f"{_W}{{43}}"),  # our own
    ("npm_", f"{_A}{{36}}"),
    ("pypi-", f"{_W}{{50,}}"),
    ("rubygems_", f"{_HEX}{{48}}{_END}"),
    ("cio", f"{_A}{{32}}{_END}"),  # crates.io
    ("hf_", f"{_A}{{30,}}"),  # Hugging Face
    (r"SG\.", rf"{_W}{{16,}}\.{_W}{{16,}}"),  # SendGrid
    ("key-", f"{_HEX}{{32}}{_END}"),  # Mailgun
    ("(?:AC|SK)", f"{_HEX}{{32}}{_END}"),  # Twilio
    ("do[opr]_v1_", "[a-f0-9]{64}"),  # DigitalOcean
    ("[0-9]{8,10}:AA", f"{_W}{{33}}(?![A-Za-z0-9_-])"),  # Telegram
    ("(?:pplx|gsk|xai|tvly|r8|fc|jina)[-_](?:dev-)?", f"{_A}{{24,}}"),
    ("shp(?:at|ca|pa|ss)_", f"[0-9a-fA-F]{{32}}{_END}"),  # Shopify
    ("sq0(?:atp|csp|idp)-", f"{_W}{{22,}}"),  # Square
    ("ATATT3", "[A-Za-z0-9_=-]{100,}"),  # Atlassian
    ("lin_(?:api|oauth)_", f"{_A}{{32,}}"),  # Linear
    ("ntn_", f"[0-9]{{11}}{_A}{{35}}"),  # Notion
    ("figd_", f"{_W}{{40,}}"),  # Figma
    ("PMAK-", f"{_HEX}{{24}}-{_HEX}{{34}}"),  # Postman
    ("glsa_", f"{_A}{{32}}_[0-9a-fA-F]{{8}}"),  # Grafana
    ("dapi", f"{_HEX}{{32}}(?:-[0-9])?{_END}"),  # Databricks
    (r"hv[sbr]\.", f"{_W}{{24,}}"),  # Vault
    (r"dp\.(?:pt|st|ct|scim|audit)\.", rf"(?:[a-z0-9_-]{{2,35}}\.)?{_A}{{40,44}}"),  # Doppler
    ("pul-", f"{_HEX}{{40}}{_END}"),  # Pulumi
    ("pscale_(?:tkn|pw|oauth)_", f"{_W}{{32,}}"),  # PlanetScale
    ("NRAK-", f"[A-Z0-9]{{27}}{_END}"),  # New Relic
    ("sntry[su]_", "[A-Za-z0-9_=+/-]{40,}"),  # Sentry
    ("AGE-SECRET-KEY-1", f"[A-Z0-9]{{58}}{_END}"),  # age
)
# A token may go on behind a dot. Two words joined by one have short parts, or no digit.
_TAIL = r"(?:\.(?:[A-Za-z0-9_-]{8,}|(?=[A-Za-z_-]{0,7}[0-9])[A-Za-z0-9_-]{4,}))*"

API_KEY = re.compile(
    r"(?<![A-Za-z0-9_-])(?:" + "|".join(begin + rest for begin, rest in _FORMATS) + ")" + _TAIL
)
# Short prefixes need more: `sk-learn-contrib-project-template` is a name.
MODEL_KEY = re.compile(r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{20,}" + _TAIL)
