// Expressions over bytes from languages of characters. A spelling maps each code point to one or more byte sequences, is
// injective and uniquely decodable; so unions, intersections and complements of languages of characters become those of
// languages of bytes. Surrogates (U+D800..DFFF) are not characters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "guideway/regex/expr.h"

namespace guideway {

enum class Encoding : std::uint8_t {
    text,        // UTF-8
    escaped,     // the canonical spelling in a JSON string: quote, backslash and control characters escaped, others not
    escaped_any  // all spellings in a JSON string
};

// Whether a character must be escaped in a JSON string.
inline bool must_escape(char32_t c) { return c < 0x20 || c == '"' || c == '\\'; }

using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // inclusive, sorted, disjoint

class Encoder {
public:
    explicit Encoder(ExprTable& exprs) : exprs_(exprs) {}

    ExprId characters(const Ranges& ranges, Encoding spelling);
    // A set of texts, each followed by `tail`.
    ExprId literals(std::vector<std::u32string> texts, Encoding spelling, ExprId tail = kEmpty);
    ExprId universe(Encoding spelling);

private:
    ExprId utf8(const Ranges& ranges);
    ExprId hex4(std::uint32_t low, std::uint32_t high);
    ExprId escapes(const Ranges& ranges, Encoding spelling);
    ExprId join(const std::vector<std::pair<unsigned, unsigned>>& pieces);

    ExprTable& exprs_;
    std::map<Ranges, ExprId> known_[3];
};

}  // namespace guideway
