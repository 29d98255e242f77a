#include "guideway/regex/decimal.h"

#include <algorithm>

#include "guideway/base/error.h"

namespace guideway {

void too_large() { throw Error(ErrorKind::limit, "a bound or divisor of a number is too large to count with"); }

void strip(Digits& n) { n.erase(0, std::min(n.find_first_not_of('0'), n.size())); }

Digits divide(const Digits& n, std::uint64_t by, bool& rest) {
    Digits made;
    std::uint64_t left = 0;
    for (char c : n) {
        left = left * 10 + static_cast<unsigned>(c - '0');
        made.push_back(static_cast<char>('0' + left / by));
        left %= by;
    }
    rest |= left != 0;
    strip(made);
    return made;
}

std::uint64_t remainder(const Digits& n, std::uint64_t by) {
    std::uint64_t left = 0;
    for (char c : n) left = (left * 10 + static_cast<unsigned>(c - '0')) % by;
    return left;
}

int compare(const Digits& a, const Digits& b) {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
}

void add_one(Digits& n) {
    std::size_t i = n.size();
    while (i-- > 0) {
        if (n[i] != '9') {
            ++n[i];
            return;
        }
        n[i] = '0';
    }
    n.insert(n.begin(), '1');
}

void take_one(Digits& n) {
    std::size_t i = n.size();
    while (i-- > 0) {
        if (n[i] != '0') {
            --n[i];
            break;
        }
        n[i] = '9';
    }
    strip(n);
}

std::uint64_t power(std::uint64_t base, std::int64_t exponent) {
    std::uint64_t made = 1;
    for (; exponent > 0; --exponent) {
        if (made >= kMaxUnit / base) too_large();
        made *= base;
    }
    return made;
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    if (b && a > (kMaxUnit - 1) / b) too_large();
    return a * b;
}

Magnitude magnitude(const Decimal& value) {
    Digits digits = value.digits;
    strip(digits);
    std::int64_t exponent = value.exponent;
    while (!digits.empty() && digits.back() == '0') {
        digits.pop_back();
        ++exponent;
    }
    if (digits.empty()) return {};
    const std::int64_t place = exponent + static_cast<std::int64_t>(digits.size()) - 1;
    if (place > kFar / 4 || place < -kFar / 4) too_large();
    return {digits, place};
}

bool less(const Decimal& a, const Decimal& b) {
    const Magnitude x = magnitude(a), y = magnitude(b);
    const int left = x.digits.empty() ? 0 : a.negative ? -1 : 1, right = y.digits.empty() ? 0 : b.negative ? -1 : 1;
    if (left != right || left == 0) return left < right;
    const bool smaller = x.place != y.place ? x.place < y.place : x.digits < y.digits, same = x.place == y.place && x.digits == y.digits;
    return !same && smaller == (left > 0);
}

std::optional<Decimal> value_of(std::string_view text) {
    Decimal made;
    std::int64_t exponent = 0;
    std::size_t at = 0;
    if (at < text.size() && text[at] == '-') made.negative = ++at;
    auto digits = [&](std::string& into) {
        const std::size_t from = at;
        while (at < text.size() && text[at] >= '0' && text[at] <= '9') into.push_back(text[at++]);
        return at > from;
    };
    if (!digits(made.digits)) return std::nullopt;
    if (at < text.size() && text[at] == '.') {
        const std::size_t before = made.digits.size();
        ++at;
        if (!digits(made.digits)) return std::nullopt;
        exponent -= static_cast<std::int64_t>(made.digits.size() - before);
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        const bool minus = at < text.size() && text[at] == '-';
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
        std::string power;
        if (!digits(power)) return std::nullopt;
        strip(power);
        const std::int64_t shift = power.size() > 17 ? 4 * kFarthest : std::stoll("0" + power);
        exponent += minus ? -shift : shift;
    }
    if (at != text.size()) return std::nullopt;
    strip(made.digits);
    while (!made.digits.empty() && made.digits.back() == '0') {
        made.digits.pop_back();
        ++exponent;
    }
    if (made.digits.empty()) return Decimal{};
    made.exponent = exponent;
    return made;
}

Cell taken_by(const Decimal& value) {
    Cell made;
    made.has_low = made.has_high = true;
    made.low = made.high = value;
    const Magnitude m = magnitude(value);
    if (m.digits.empty() || (m.place < kFarthest && m.place >= -kFarthest)) return made;
    const Decimal edge{value.negative, m.place < 0 ? -kFarthest : kFarthest, "1"};
    if (m.place < 0) {  // between zero and the edge
        (value.negative ? made.low : made.high) = edge;
        (value.negative ? made.high : made.low) = {};
        made.open_low = made.open_high = true;
    } else if (value.negative) {
        made.has_low = false;
        made.high = edge;
    } else {
        made.has_high = false;
        made.low = edge;
    }
    return made;
}

}  // namespace guideway
