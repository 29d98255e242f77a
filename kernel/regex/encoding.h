// From characters to bytes. A spelling gives each code point one or more byte sequences, no two code points the same
// one, and is uniquely decodable; so unions, intersections and complements of languages of characters become those of
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
    escaped,     // one way: quote, backslash and controls escaped, the rest raw
    escaped_any  // every way to write it inside a JSON string
};

// Whether no JSON string holds it as it is.
inline bool must_escape(char32_t c) { return c < 0x20 || c == '"' || c == '\\'; }

using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // inclusive, sorted, disjoint

class Encoder {
public:
    explicit Encoder(ExprTable& exprs) : exprs_(exprs) {}

    ExprId characters(const Ranges& ranges, Encoding spelling);
    // `tail` comes after each of them.
    ExprId literals(std::vector<std::u32string> texts, Encoding spelling, ExprId tail = kEmpty);
    ExprId universe(Encoding spelling);

private:
    ExprId utf8(const Ranges& ranges);
    ExprId hex4(std::uint32_t low, std::uint32_t high);
    ExprId escapes(const Ranges& ranges, Encoding spelling);
    ExprId byte(unsigned b) { return exprs_.set(ByteSet::range(b, b)); }
    ExprId join(const std::vector<std::pair<unsigned, unsigned>>& pieces);

    ExprTable& exprs_;
    std::map<Ranges, ExprId> known_[3];
};

}  // namespace guideway
