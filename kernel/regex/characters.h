// Decoders of characters, byte by byte, in each spelling. A part is the state inside a character of which some bytes were read: its
// kind of spelling, the number of bytes read, and the bits decoded.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "guideway/base/byte_set.h"
#include "guideway/regex/encoding.h"

namespace guideway {

inline constexpr char32_t kLastCharacter = 0x10ffff, kNoCharacter = 0xffffffff;
inline bool is_character(char32_t c) { return c <= kLastCharacter && (c < 0xd800 || c >= 0xe000); }  // not a surrogate

// Whether a byte that begins a character is the whole character, in every spelling.
inline bool is_whole_character(std::uint8_t byte) { return byte < 0x80 && !must_escape(byte); }

struct CharacterRead {  // the result of a byte: another part, or a character, or neither (the byte is not legal)
    DecoderState part = kBetween;
    char32_t character = kNoCharacter;
};
CharacterRead read_character(Encoding spelling, DecoderState part, std::uint8_t byte);
// Sets at most two spans that contain all characters that a part may become, and perhaps others. Returns their number.
unsigned spans_of(Encoding spelling, DecoderState part, std::pair<char32_t, char32_t>* spans);
// Whether a character of such a span has a spelling that begins with the part.
bool fits(Encoding spelling, DecoderState part, char32_t c);
// The UTF-8 of a character: its number of bytes, and byte number `at`.
unsigned utf8_length(char32_t c);
std::uint8_t utf8_byte(char32_t c, unsigned at);
// The characters with an escape of two bytes, such as a line feed, and the second bytes.
inline constexpr std::string_view kShortNames = "\"\\/bfnrt";
inline constexpr std::array<char32_t, 8> kShortTargets{'"', '\\', '/', 8, 12, 10, 13, 9};
// The number of bytes of the shortest spelling of a character that fits, after the part.
std::uint32_t bytes_left(Encoding spelling, DecoderState part, char32_t c);
inline std::uint32_t shortest_spelling(Encoding spelling, char32_t c) {
    return c < 0x80 && is_whole_character(static_cast<std::uint8_t>(c)) ? 1 : bytes_left(spelling, kBetween, c);
}
// Adds the bytes that extend a part to a character that fits it.
void put_next(Encoding spelling, DecoderState part, char32_t c, ByteSet& made);

}  // namespace guideway
