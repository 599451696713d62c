"""Forms of ids, and the user that everybody reads."""

import re

MEMORY_ID_PATTERN = re.compile(r"^[A-Za-z0-9._:@-]{1,128}$")


USER_ID_PATTERN = re.compile(r"^[A-Za-z0-9._:@-]{1,128}$")


SYSTEM_USER = "system"
