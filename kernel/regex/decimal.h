// Exact decimals: the numbers of a grammar and of texts, and arithmetic on their digits for bounds.
//
// For the user: a `Decimal` is a value, independent of its spelling; `value_of` reads one from a JSON text. Exponents beyond
// ±kFarthest, which have eighteen digits, are not distinguished: `taken_by` returns all numbers that count as equal to a value, so
// that none of them counts as different.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace guideway {

constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4;  // beyond every exponent that is distinguished
constexpr std::int64_t kFarthest = 100'000'000'000'000'000;
constexpr std::uint64_t kMaxUnit = 1ULL << 59;  // remainders times ten fit into a word

struct Decimal {
    bool negative = false;
    std::int64_t exponent = 0;
    std::string digits;  // '0'..'9', most significant first
};

// The allowed spellings of a number. any: all; plain: without an exponent, and without a fraction if the cell has only integers;
// pointed: with a fraction or an exponent.
enum class NumberText : std::uint8_t { any, plain, pointed };
inline constexpr std::uint32_t kNumberTexts = 3;

struct Cell {  // the numbers between two bounds that are multiples of some numbers and not of others
    bool has_low = false, has_high = false, open_low = false, open_high = false;
    Decimal low, high;
    std::vector<Decimal> multiple_of, not_multiple_of;
};

// The value of a JSON number; no value if the text is none.
std::optional<Decimal> value_of(std::string_view text);
// One value, or all those too large or too small to be distinguished from it.
Cell taken_by(const Decimal& value);
bool less(const Decimal& a, const Decimal& b);

struct Magnitude {  // 0.d1d2d3... * 10^(place + 1), no zeros at either end; no digits: zero
    std::string digits;
    std::int64_t place = 0;
};
// Throws Error(limit) for an exponent that is too large.
Magnitude magnitude(const Decimal& value);

// Natural numbers as decimal digits, without leading zeros.
using Digits = std::string;
void strip(Digits& n);
Digits divide(const Digits& n, std::uint64_t by, bool& rest);  // rounded down; `rest` is set if there is one
std::uint64_t remainder(const Digits& n, std::uint64_t by);
int compare(const Digits& a, const Digits& b);
void add_one(Digits& n);
void take_one(Digits& n);

// Throw Error(limit) for a result of kMaxUnit or more.
std::uint64_t power(std::uint64_t base, std::int64_t exponent);
std::uint64_t times(std::uint64_t a, std::uint64_t b);
[[noreturn]] void too_large();

}  // namespace guideway
