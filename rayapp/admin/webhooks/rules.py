"""What is sent, how it is signed, and where nothing is sent. Pure.

The requests are those of Standard Webhooks (standardwebhooks.com), whose libraries check them in
every language.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

import orjson

from rayapp.admin.webhooks.records import Delivery, Webhook
from rayapp.core.claims import Backoff
from rayapp.core.errors import InvalidInput

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32
# From a second to an hour: a day in all, then the webhook is switched off.
BACKOFF = Backoff(pause_s=1.0, most_s=3_600.0, tries=36)
GONE = 410
_PORTS = {"http": 80, "https": 443}
# Addresses of IPv6 that lead to one of IPv4 behind a translator.
_NAT64 = IPv6Network("64:ff9b::/96")


def new_secret(random: bytes) -> str:
    return SECRET_PREFIX + base64.b64encode(random).decode()


def body_of(delivery: Delivery) -> bytes:
    """The same bytes at every try, because the signature is of them."""
    content = {"type": delivery.kind, "timestamp": delivery.at, "data": delivery.data}
    return orjson.dumps(content, option=orjson.OPT_UTC_Z | orjson.OPT_SORT_KEYS)


def headers_of(webhook: Webhook, delivery_id: str, body: bytes, at: datetime) -> dict[str, str]:
    """Name, time and signature of one request."""
    seconds = str(int(at.timestamp()))
    key = base64.b64decode(webhook.secret.removeprefix(SECRET_PREFIX))
    signed = b".".join([delivery_id.encode(), seconds.encode(), body])
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "content-type": "application/json",
        "user-agent": "rayapp",
        "webhook-id": delivery_id,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{signature}",
    }


def wants(webhook: Webhook, kind: str, position: str) -> bool:
    """Whether it is told an event of this place in the stream."""
    later = position.upper() > webhook.since.upper()
    return webhook.off is None and later and (not webhook.kinds or kind in webhook.kinds)


def checked_url(url: str) -> tuple[str, int]:
    """Host and port of an address that a webhook may have. Raises InvalidInput."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise _bad_url("is no address") from None
    if parts.scheme not in _PORTS or not host:
        raise _bad_url("must begin with https:// or http:// and name a host")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise _bad_url("must hold no user, no password and no fragment")
    return host, port


def is_public(address: str) -> bool:
    """Whether an address lies in the public network, also behind the forms that hide another."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and (inner := _inner(ip)) is not None:
        ip = inner
    return ip.is_global and not ip.is_multicast


def _inner(ip: IPv6Address) -> IPv4Address | None:
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)


def refuse_private(addresses: Mapping[str, bool], host: str) -> None:
    """Raises InvalidInput: one of the addresses of a host is not public."""
    if not addresses:
        raise _bad_url(f"names {host}, which has no address")
    if not all(addresses.values()):
        raise _bad_url(
            f"leads into a private network ({host}); use a public address, or set "
            "webhooks.allow_private on a service of your own"
        )


def _bad_url(reason: str) -> InvalidInput:
    return InvalidInput(f"url: {reason}.", details={"field": "url"})
