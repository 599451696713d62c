"""Log lines as JSON. Never the text of a memory, never a key: users appear as a short hash."""

import hashlib
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import orjson

from rayapp.core.settings.model import LoggingSettings

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
_SECRET = re.compile(r"(?P<head>\b\w+://[^:/@\s]+:)[^@\s]+(?=@)|(?P<key>\brk_)[A-Za-z0-9_-]+")


def user_hash(user_id: str) -> str:
    """Twelve hex characters that tell users apart without naming them."""
    return hashlib.sha256(user_id.encode()).hexdigest()[:12]


def redact(text: str) -> str:
    """Replace passwords in URLs and API keys."""
    return _SECRET.sub(lambda m: (m.group("head") or m.group("key")) + "***", text)


class JsonFormatter(logging.Formatter):
    """One JSON object per line; `extra={"fields": {...}}` adds keys."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if request_id.get():
            line["request_id"] = request_id.get()
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        return orjson.dumps(line, default=str).decode()


def configure_logging(settings: LoggingSettings) -> None:
    """Send the `rayapp` loggers to stderr in the configured shape.

    The process's own stderr: Serve puts a stream before it that prefixes every line.
    """
    handler = logging.StreamHandler(sys.__stderr__)
    if settings.json_lines:
        handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("rayapp")
    logger.handlers = [handler]
    logger.setLevel(settings.level.upper())
    logger.propagate = False
