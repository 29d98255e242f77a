"""URIs, IRIs, URI templates, UUIDs, JSON Pointers, versions, phone numbers and colours."""

from __future__ import annotations

from guideway.caching import cached
from guideway.frontends.formats.network import ipv6
from guideway.frontends.formats.rules import spelled
from guideway.grammar.regular import EMPTY, Regular, cat, chars, either, literal, optional, repeat

__all__ = [
    "hex_colour",
    "iri",
    "iri_reference",
    "json_pointer",
    "phone",
    "relative_json_pointer",
    "semver",
    "uri",
    "uri_reference",
    "uri_template",
    "url",
    "uuid",
]

_ENCODED = "%[0-9A-Fa-f]{2}"
_MARKS = "!$&'()*+,;="
_FREE = chars("az", "AZ", "09", "--", "..", "__", "~~").ranges
_UCS = (
    *((0xA0, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF)),
    *((plane << 16, (plane << 16) + 0xFFFD) for plane in range(1, 0xE)),
    (0xE1000, 0xEFFFD),
)
_PRIVATE = ((0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))

Ranges = tuple[tuple[int, int], ...]


@cached(4)
def _resource(ucs: Ranges, private: Ranges) -> tuple[Regular, Regular]:
    """Return two languages: URIs with a scheme, and relative references (RFC 3986, appendix A).

    Args:
        ucs: More code points that are allowed: `ucschar` of RFC 3987 for IRIs, none for URIs.
        private: More code points that are allowed in queries: `iprivate` of RFC 3987 for IRIs, none for URIs.
    """
    encoded = spelled(_ENCODED)

    def char(more: str, others: Ranges = ()) -> Regular:
        return either([chars(*_FREE, *ucs, *others, *(sign * 2 for sign in _MARKS + more)), encoded])

    segment, query, fragment = char(":@"), char(":@/?", private), char(":@/?")
    future = spelled(r"[Vv][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+")
    host = either([cat("[", either([ipv6(), future]), "]"), repeat(char(""))])
    authority = cat(optional(cat(repeat(char(":")), "@")), host, spelled("(:[0-9]*)?"))
    rest = repeat(cat("/", repeat(segment)))
    named = cat("//", authority, rest)
    rooted = cat("/", optional(cat(repeat(segment, 1), rest)))
    rootless = cat(repeat(segment, 1), rest)
    relative = cat(repeat(char("@"), 1), rest)
    end = cat(optional(cat("?", repeat(query))), optional(cat("#", repeat(fragment))))
    scheme = spelled(r"[A-Za-z][A-Za-z0-9+\-.]*:")
    return cat(scheme, either([named, rooted, rootless, EMPTY]), end), cat(
        either([named, rooted, relative, EMPTY]), end
    )


def uri() -> Regular:
    """Return URIs with a scheme (RFC 3986)."""
    return _resource((), ())[0]


def uri_reference() -> Regular:
    """Return URIs and relative references (RFC 3986)."""
    return either(_resource((), ()))


def iri() -> Regular:
    """Return IRIs with a scheme (RFC 3987)."""
    return _resource(_UCS, _PRIVATE)[0]


def iri_reference() -> Regular:
    """Return IRIs and relative references (RFC 3987)."""
    return either(_resource(_UCS, _PRIVATE))


def url() -> Regular:
    """Return http and https URIs without user information. The host is a name, an IPv4 address or `[IPv6 address]`."""
    label = cat(spelled("[A-Za-z0-9]"), spelled("([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"))
    host = either([cat(label, repeat(cat(".", label))), cat("[", ipv6(), "]")])
    segment = spelled(rf"[A-Za-z0-9\-._~!$&'()*+,;=:@/]|{_ENCODED}")
    more = repeat(either([segment, literal("?")]))
    path, query, fragment = (optional(part) for part in (cat("/", repeat(segment)), cat("?", more), cat("#", more)))
    return cat(literal("http://", "https://"), host, spelled("(:[0-9]{1,5})?"), path, query, fragment)


def uri_template() -> Regular:
    """Return templates of RFC 6570 up to level 4. The apostrophe is a literal (erratum 6937)."""
    literals = rf"([^\u0000-\u0020\"%<>\\^`{{|}}\u007f-\u009f]|{_ENCODED})"
    char = f"([A-Za-z0-9_]|{_ENCODED})"
    name = rf"{char}(\.?{char})*"
    variable = rf"{name}(:[1-9][0-9]{{0,3}}|\*)?"
    return spelled(rf"({literals}|\{{[+#./;?&]?{variable}(,{variable})*\}})*")


def uuid() -> Regular:
    """Return UUIDs with hyphens, of any version (RFC 4122)."""
    return spelled("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


_POINTER = "(/([^~/]|~[01])*)*"


def json_pointer() -> Regular:
    """Return JSON Pointers (RFC 6901)."""
    return spelled(_POINTER)


def relative_json_pointer() -> Regular:
    """Return relative JSON Pointers (draft-handrews-relative-json-pointer-01)."""
    return spelled(f"(0|[1-9][0-9]*)(#|{_POINTER})")


def semver() -> Regular:
    """Return versions of Semantic Versioning 2.0.0."""
    number = "(0|[1-9][0-9]*)"
    word = "[0-9A-Za-z-]"
    part = f"({number}|[0-9]*[A-Za-z-]{word}*)"
    return spelled(rf"{number}\.{number}\.{number}(-{part}(\.{part})*)?(\+{word}+(\.{word}+)*)?")


def phone() -> Regular:
    """Return telephone numbers of E.164: `+` and 2 to 15 digits."""
    return spelled(r"\+[1-9][0-9]{1,14}")


def hex_colour() -> Regular:
    """Return `#rgb`, `#rgba`, `#rrggbb` and `#rrggbbaa`."""
    return spelled("#([0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})")
