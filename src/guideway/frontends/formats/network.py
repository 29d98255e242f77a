"""Host names, addresses and mailboxes."""

from __future__ import annotations

from guideway.caching import cached
from guideway.frontends.formats.rules import limited, spelled
from guideway.grammar.regular import EMPTY, Regular, cat, chars, either, literal, optional, repeat

__all__ = ["MOST_IN_NAME", "email", "hostname", "idn_email", "ip", "ipv4", "ipv6", "label"]

_OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"

_LETTER_OR_DIGIT = chars("az", "AZ", "09")
_LETTER_DIGIT_HYPHEN = chars("az", "AZ", "09", "--")
_MOST_IN_LABEL, MOST_IN_NAME, _MOST_BEFORE_AT = 63, 253, 64


@cached(1)
def ipv4() -> Regular:
    """Return IPv4 addresses: four decimal octets without leading zeros (RFC 2673, section 3.2)."""
    return spelled(rf"{_OCTET}(\.{_OCTET}){{3}}")


@cached(1)
def ipv6() -> Regular:
    """Return IPv6 addresses without zone and prefix length (RFC 4291, section 2.2).

    The grammar is that of RFC 3986: eight groups; `::` for one or more zero groups; the last two groups may be IPv4.
    """
    group = spelled("[0-9A-Fa-f]{1,4}")
    before, after = cat(group, ":"), cat(":", group)
    last = either([cat(group, after), ipv4()])

    def head(most: int) -> Regular:
        return optional(cat(group, repeat(after, 0, most - 1))) if most else EMPTY

    forms = [cat(repeat(before, 6, 6), last), cat(head(6), "::", group), cat(head(7), "::")]
    forms += [cat(head(5 - n), "::", repeat(before, n, n), last) for n in range(6)]
    return either(forms)


def ip() -> Regular:
    """Return IPv4 and IPv6 addresses."""
    return either([ipv4(), ipv6()])


def label() -> Regular:
    """Return ASCII labels of host names: 1 to 63 letters, digits and hyphens, without a hyphen at either end.

    A-labels (`xn--`) are omitted, because no regular language describes which of them are valid.
    """
    end, inner = _LETTER_OR_DIGIT, _LETTER_DIGIT_HYPHEN

    def to_end(so_far: int) -> Regular:
        return optional(cat(repeat(inner, 0, _MOST_IN_LABEL - 1 - so_far), end))

    no_x, no_n = chars("09", "AW", "YZ", "aw", "yz"), chars("--", "09", "AM", "OZ", "am", "oz")
    after_xn = either([cat(end, to_end(3)), cat("-", end, to_end(4))])
    after_x = either([end, cat(no_n, repeat(inner, 0, _MOST_IN_LABEL - 3), end), cat(chars("NN", "nn"), after_xn)])
    return either([cat(no_x, to_end(1)), cat(chars("XX", "xx"), optional(after_x))])


def hostname() -> Regular:
    """Return host names of RFC 1123 with at most 253 characters, without a final dot and without A-labels (`xn--`)."""
    name = label()
    return limited(cat(name, repeat(cat(".", name))), MOST_IN_NAME)


def _mailbox(more: str, domain: Regular) -> Regular:
    """Return mailboxes of RFC 5321, section 4.1.2.

    Args:
        more: More characters of the part before `@`, as a range in a class of a pattern.
        domain: The language of the domain. An address in brackets is always allowed.
    """
    atom = rf"[A-Za-z0-9!#$%&'*+\-/=?^_`{{|}}~{more}]+"
    quoted = rf'"([ !#-\[\]-~{more}]|\\[ -~])*"'
    local = limited(spelled(rf"{atom}(\.{atom})*|{quoted}"), _MOST_BEFORE_AT)
    literals = cat("[", either([ipv4(), cat(literal("IPv6:"), ipv6())]), "]")
    return cat(local, "@", either([domain, literals]))


def email() -> Regular:
    """Return mailboxes of RFC 5321.

    The part before `@` is a dot-atom or a quoted string of at most 64 characters. The domain is a host name, or an IP
    address in brackets.
    """
    return _mailbox("", hostname())


def idn_email() -> Regular:
    """Return mailboxes of RFC 6531: like `email`, with non-ASCII characters before and after `@`.

    The 64 characters before `@` are counted in characters, not bytes. The domain need not meet the rules of IDNA.
    """
    # The non-ASCII characters, except those that IDNA treats as dots.
    beyond = chars((0x80, 0x3001), (0x3003, 0xFF0D), (0xFF0F, 0xFF60), (0xFF62, 0x10FFFF))
    end = chars("az", "AZ", "09", *beyond.ranges)
    inner = chars("--", *end.ranges)
    name = cat(end, optional(cat(repeat(inner, 0, _MOST_IN_LABEL - 2), end)))
    return _mailbox("\\u0080-\\u{10ffff}", limited(cat(name, repeat(cat(".", name))), MOST_IN_NAME))
