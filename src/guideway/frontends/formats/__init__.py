"""The formats of JSON Schema, and some others, as regular languages.

date_time.py            dates, times, durations
network.py              hosts, addresses, mailboxes
identifiers.py          URIs and IRIs, UUIDs, pointers, versions, phone numbers, colours
regular_expressions.py  regular expressions
idna.py                 internationalised host names
rules.py                the language of a pattern, a limit on the length of texts

A language is built on first use and cached. The docstring of a function says which valid texts its language omits, and
which rules of the specification it does not check.
"""

from __future__ import annotations

from collections.abc import Callable

from guideway.caching import cached
from guideway.frontends.formats import (
    date_time as clock,
    identifiers,
    idna,
    network,
    regular_expressions as expressions,
)
from guideway.grammar.regular import Regular

__all__ = ["FORMATS", "format_language"]

FORMATS: dict[str, Callable[[], Regular]] = {
    "date": clock.date,
    "date-time": clock.date_time,
    "duration": clock.duration,
    "email": network.email,
    "hex-colour": identifiers.hex_colour,
    "hostname": network.hostname,
    "idn-email": network.idn_email,
    "idn-hostname": idna.idn_hostname,
    "ip": network.ip,
    "ipv4": network.ipv4,
    "ipv6": network.ipv6,
    "iri": identifiers.iri,
    "iri-reference": identifiers.iri_reference,
    "json-pointer": identifiers.json_pointer,
    "phone": identifiers.phone,
    "regex": expressions.regex,
    "relative-json-pointer": identifiers.relative_json_pointer,
    "semver": identifiers.semver,
    "time": clock.time,
    "uri": identifiers.uri,
    "uri-reference": identifiers.uri_reference,
    "uri-template": identifiers.uri_template,
    "url": identifiers.url,
    "uuid": identifiers.uuid,
}
"""For each name of a format, the function that builds its language."""


@cached(64)
def format_language(name: str) -> Regular:
    """Return the language of a format. Raises `KeyError` for a name that is not in `FORMATS`."""
    return FORMATS[name]()
