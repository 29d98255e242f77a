// Characters as their bytes come, in any of their spellings: a part is what is known of a character of which some bytes
// were read.
#pragma once

#include <cstdint>
#include <utility>

#include "guideway/base/byte_set.h"
#include "guideway/regex/encoding.h"

namespace guideway {

inline constexpr char32_t kLastCharacter = 0x10ffff;

// A character begun: what kind of spelling, how much of it came, and which bits it gave. 0: none.
using DecoderState = std::uint32_t;

struct CharacterRead {  // what a byte makes of a part: another part, or a character, or neither
    DecoderState part = 0;
    char32_t character = 0xffffffff;
};
CharacterRead read_character(Encoding spelling, DecoderState part, std::uint8_t byte);
// The characters that a part may become lie in these spans, two at most; not all of them need fit. Returns how many.
unsigned spans_of(Encoding spelling, DecoderState part, std::pair<char32_t, char32_t>* spans);
// Whether a character of such a span has a spelling that begins with the part.
bool fits(Encoding spelling, DecoderState part, char32_t c);
// Bytes of the shortest spelling of a character that fits, less those that came.
std::uint32_t bytes_left(Encoding spelling, DecoderState part, char32_t c);
// Adds the bytes that extend a part to a character that fits it.
void put_next(Encoding spelling, DecoderState part, char32_t c, ByteSet& made);

}  // namespace guideway
