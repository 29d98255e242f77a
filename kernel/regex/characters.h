// Decoders of characters, byte by byte, in each spelling. A part is the state inside a character of which some bytes were read: its
// kind of spelling, the number of bytes read, and the bits decoded.
#pragma once

#include <cstdint>
#include <utility>

#include "guideway/base/byte_set.h"
#include "guideway/regex/encoding.h"

namespace guideway {

inline constexpr char32_t kLastCharacter = 0x10ffff;
inline bool is_character(char32_t c) { return c <= kLastCharacter && (c < 0xd800 || c >= 0xe000); }  // not a surrogate

// Whether a byte between characters is a character by itself, in all spellings.
inline bool is_whole_character(std::uint8_t byte) { return byte < 0x80 && !must_escape(byte); }

struct CharacterRead {  // the result of a byte: another part, or a character, or neither (the byte is not legal)
    DecoderState part = kBetween;
    char32_t character = 0xffffffff;
};
CharacterRead read_character(Encoding spelling, DecoderState part, std::uint8_t byte);
// Sets at most two spans that contain all characters that a part may become, and perhaps others. Returns their number.
unsigned spans_of(Encoding spelling, DecoderState part, std::pair<char32_t, char32_t>* spans);
// Whether a character of such a span has a spelling that begins with the part.
bool fits(Encoding spelling, DecoderState part, char32_t c);
// The number of bytes of the shortest spelling of a character that fits, after the part.
std::uint32_t bytes_left(Encoding spelling, DecoderState part, char32_t c);
// Adds the bytes that extend a part to a character that fits it.
void put_next(Encoding spelling, DecoderState part, char32_t c, ByteSet& made);

}  // namespace guideway
