#include "guideway/regex/characters.h"

#include <algorithm>

namespace guideway {

namespace {

// What was read of a character. utf8: bytes, which are in `bits`; escape: a backslash; unit: digits after \u; pair: bytes
// of \uXXXX after a high surrogate. For a pair, `bits` has ten bits of the high surrogate and, in lower bits, the digits of
// the low one.
enum class Kind : std::uint32_t { none, utf8, escape, unit, pair };

DecoderState part_of(Kind kind, std::uint32_t count, std::uint32_t bits) {
    return DecoderState{static_cast<std::uint32_t>(kind) << 28 | count << 24 | bits};
}
Kind kind_of(DecoderState part) { return static_cast<Kind>(raw(part) >> 28); }
std::uint32_t count_of(DecoderState part) { return raw(part) >> 24 & 15; }
std::uint32_t bits_of(DecoderState part) { return raw(part) & 0xffffff; }

unsigned length_of(std::uint32_t lead) { return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4; }
int digit_of(std::uint8_t b, bool upper) {
    if (b >= '0' && b <= '9') return b - '0';
    if (b >= 'a' && b <= 'f') return b - 'a' + 10;
    if (upper && b >= 'A' && b <= 'F') return b - 'A' + 10;
    return -1;
}

// The letter of a character after a backslash, or 0.
char short_name(Encoding spelling, char32_t c) {
    if (!must_escape(c) && c != '/') return 0;
    for (unsigned i = 0; i < 8; ++i)
        if (kShortTargets[i] == c && (spelling == Encoding::escaped_any || c != '/')) return kShortNames[i];
    return 0;
}
bool is_raw(Encoding spelling, char32_t c) { return spelling == Encoding::text || !must_escape(c); }
bool has_unit(Encoding spelling, char32_t c) {
    return spelling == Encoding::escaped_any || (spelling == Encoding::escaped && c < 0x20 && !short_name(spelling, c));
}
char32_t high_of(char32_t c) { return 0xd800 + ((c - 0x10000) >> 10); }
char32_t low_of(char32_t c) { return 0xdc00 + ((c - 0x10000) & 0x3ff); }

CharacterRead read_first(Encoding spelling, std::uint8_t b) {
    if (spelling != Encoding::text && b == '\\') return {part_of(Kind::escape, 0, 0)};
    if (b < 0x80) return is_raw(spelling, b) ? CharacterRead{kBetween, b} : CharacterRead{};
    return b >= 0xc2 && b <= 0xf4 ? CharacterRead{part_of(Kind::utf8, 1, b)} : CharacterRead{};
}

CharacterRead read_utf8(DecoderState part, std::uint8_t b) {
    if ((b & 0xc0) != 0x80) return {};
    const std::uint32_t count = count_of(part), lead = bits_of(part) >> (8 * (count - 1)), n = length_of(lead);
    if (count + 1 < n) return {part_of(Kind::utf8, count + 1, bits_of(part) << 8 | b)};
    char32_t c = lead & (0x7fu >> n);
    for (std::uint32_t i = 1; i < count; ++i) c = c << 6 | (bits_of(part) >> (8 * (count - 1 - i)) & 0x3f);
    c = c << 6 | (b & 0x3f);
    return utf8_length(c) == n ? CharacterRead{kBetween, c} : CharacterRead{};
}

CharacterRead read_unit(Encoding spelling, DecoderState part, std::uint8_t b) {
    const int digit = digit_of(b, spelling == Encoding::escaped_any);
    if (digit < 0) return {};
    const std::uint32_t bits = bits_of(part) << 4 | static_cast<std::uint32_t>(digit);
    if (count_of(part) < 3) return {part_of(Kind::unit, count_of(part) + 1, bits)};
    if (bits >= 0xd800 && bits < 0xdc00 && spelling == Encoding::escaped_any) return {part_of(Kind::pair, 0, (bits & 0x3ff) << 12)};
    return has_unit(spelling, bits) ? CharacterRead{kBetween, bits} : CharacterRead{};
}

CharacterRead read_pair(DecoderState part, std::uint8_t b) {
    const std::uint32_t count = count_of(part), bits = bits_of(part);
    if (count < 2) return b == (count ? 'u' : '\\') ? CharacterRead{part_of(Kind::pair, count + 1, bits)} : CharacterRead{};
    const int digit = digit_of(b, true);
    if (digit < 0) return {};
    const std::uint32_t low = (bits & 0xfff) << 4 | static_cast<std::uint32_t>(digit), high = bits >> 12;
    if (count < 5) return {part_of(Kind::pair, count + 1, high << 12 | low)};
    return low >= 0xdc00 && low < 0xe000 ? CharacterRead{kBetween, 0x10000 + (high << 10) + (low & 0x3ff)} : CharacterRead{};
}

void put_digit(Encoding spelling, char32_t unit, std::uint32_t at, ByteSet& made) {
    const unsigned digit = unit >> (4 * (3 - at)) & 15;
    made.insert(static_cast<std::uint8_t>("0123456789abcdef"[digit]));
    if (spelling == Encoding::escaped_any) made.insert(static_cast<std::uint8_t>("0123456789ABCDEF"[digit]));
}

}  // namespace

unsigned utf8_length(char32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

std::uint8_t utf8_byte(char32_t c, unsigned at) {
    const unsigned n = utf8_length(c);
    constexpr unsigned lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const std::uint32_t bits = c >> (6 * (n - 1 - at));
    return static_cast<std::uint8_t>(at ? 0x80 | (bits & 0x3f) : lead[n] | bits);
}

CharacterRead read_character(Encoding spelling, DecoderState part, std::uint8_t b) {
    switch (kind_of(part)) {
        case Kind::none: return read_first(spelling, b);
        case Kind::utf8: return read_utf8(part, b);
        case Kind::escape: {
            if (b == 'u') return {part_of(Kind::unit, 0, 0)};
            for (unsigned i = 0; i < 8; ++i)
                if (kShortNames[i] == static_cast<char>(b))
                    return short_name(spelling, kShortTargets[i]) ? CharacterRead{kBetween, kShortTargets[i]} : CharacterRead{};
            return {};
        }
        case Kind::unit: return read_unit(spelling, part, b);
        case Kind::pair: return read_pair(part, b);
    }
    return {};
}

void put_next(Encoding spelling, DecoderState part, char32_t c, ByteSet& made) {
    const std::uint32_t count = count_of(part);
    switch (kind_of(part)) {
        case Kind::none:
            if (is_raw(spelling, c)) made.insert(utf8_byte(c, 0));
            if (spelling != Encoding::text && (has_unit(spelling, c) || short_name(spelling, c))) made.insert('\\');
            return;
        case Kind::utf8: made.insert(utf8_byte(c, count)); return;
        case Kind::escape:
            if (const char name = short_name(spelling, c)) made.insert(static_cast<std::uint8_t>(name));
            if (has_unit(spelling, c)) made.insert('u');
            return;
        case Kind::unit: put_digit(spelling, c < 0x10000 ? c : high_of(c), count, made); return;
        case Kind::pair:
            if (count < 2) made.insert(count ? 'u' : '\\');
            else put_digit(spelling, low_of(c), count - 2, made);
            return;
    }
}

unsigned spans_of(Encoding spelling, DecoderState part, std::pair<char32_t, char32_t>* spans) {
    const std::uint32_t count = count_of(part), bits = bits_of(part);
    spans[0] = {0, kLastCharacter};
    switch (kind_of(part)) {
        case Kind::none: return 1;
        case Kind::utf8: {
            const std::uint32_t lead = bits >> (8 * (count - 1)), n = length_of(lead);
            char32_t c = lead & (0x7fu >> n);
            for (std::uint32_t i = 1; i < count; ++i) c = c << 6 | (bits >> (8 * (count - 1 - i)) & 0x3f);
            constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
            const std::uint32_t open = 6 * (n - count);
            spans[0] = {std::max<char32_t>(least[n], c << open), ((c + 1) << open) - 1};
            return 1;
        }
        case Kind::escape: return 1;
        case Kind::unit: {
            const std::uint32_t open = 4 * (4 - count), low = bits << open, high = ((bits + 1) << open) - 1;
            spans[0] = {low, high};
            if (spelling != Encoding::escaped_any || high < 0xd800 || low >= 0xdc00) return 1;
            spans[1] = {0x10000 + ((std::max(low, 0xd800u) & 0x3ff) << 10), 0x10000 + ((std::min(high, 0xdbffu) & 0x3ff) << 10) + 0x3ff};
            return 2;
        }
        case Kind::pair: {
            const char32_t first = 0x10000 + (bits >> 12 << 10);
            spans[0] = {first, first + 0x3ff};
            return 1;
        }
    }
    return 0;
}

bool fits(Encoding spelling, DecoderState part, char32_t c) {
    switch (kind_of(part)) {
        case Kind::none:
        case Kind::utf8: return true;
        case Kind::escape: return has_unit(spelling, c) || short_name(spelling, c);
        case Kind::unit: return has_unit(spelling, c);
        case Kind::pair: {
            const std::uint32_t count = count_of(part);
            return count < 3 || low_of(c) >> (4 * (6 - count)) == (bits_of(part) & 0xfff);
        }
    }
    return false;
}

std::uint32_t bytes_left(Encoding spelling, DecoderState part, char32_t c) {
    const std::uint32_t count = count_of(part);
    switch (kind_of(part)) {
        case Kind::none: return is_raw(spelling, c) ? utf8_length(c) : short_name(spelling, c) ? 2 : 6;
        case Kind::utf8: return utf8_length(c) - count;
        case Kind::escape: return short_name(spelling, c) ? 1 : c < 0x10000 ? 5 : 11;
        case Kind::unit: return 4 - count + (c < 0x10000 ? 0 : 6);
        case Kind::pair: return 6 - count;
    }
    return 0;
}

}  // namespace guideway
