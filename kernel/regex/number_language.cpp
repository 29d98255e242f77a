#include "guideway/regex/number_language.h"

#include <algorithm>
#include <numeric>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/regex/structure.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxDigits = 4096;  // maximum number of digits of a number if its cells depend on all of them
constexpr std::uint64_t kWindow = 64;     // one of as many consecutive numbers is no multiple of up to ten divisors
constexpr std::int64_t kWide = 24;        // 10^24 is more than kWindow times any unit
constexpr std::size_t kMaxOthers = 10;
constexpr std::uint64_t kStateWork = 20;
constexpr std::size_t kNodeBytes = 80, kLiveBytes = 80;  // of a node of a map; of a range in a state, with its residues
constexpr std::uint64_t kMaxRemainders = 50'000;         // of unbounded numbers: limits the number of states

}  // namespace

// The part of a cell above zero (or below, by magnitude); `whole` and divisors do not depend on the sign.
NumberLanguage::Range NumberLanguage::range_of(const Cell& cell, bool negative) const {
    Range made;
    auto bound = [&](const Decimal& d, bool open, bool is_low) {
        const Magnitude m = magnitude(d);
        const bool below = m.digits.empty() || d.negative != negative;  // not on this side of zero
        // Below zero, the high bound of a cell is the low bound of the magnitude.
        Bound& target = is_low != negative ? made.low : made.high;
        if (!below) target = {m.digits, m.place, open};
        return below;
    };
    bool never = false;
    if (cell.has_low && bound(cell.low, cell.open_low, true) && negative) never = true;
    if (cell.has_high && bound(cell.high, cell.open_high, false) && !negative) never = true;
    auto divisor = [&](const Decimal& d) {
        const Magnitude m = magnitude(d);
        if (m.digits.empty()) throw Error(ErrorKind::invalid, "nothing is a multiple of zero but zero");
        Divisor made_divisor;
        if (m.digits.size() > 18) too_large();
        made_divisor.r = std::stoull(m.digits);
        made_divisor.twos = made_divisor.fives = m.place - static_cast<std::int64_t>(m.digits.size()) + 1;
        for (; made_divisor.r % 2 == 0; made_divisor.r /= 2) ++made_divisor.twos;
        for (; made_divisor.r % 5 == 0; made_divisor.r /= 5) ++made_divisor.fives;
        return made_divisor;
    };
    auto settle = [](Divisor& d) {
        d.prime = d.twos > d.fives ? 2 : 5;
        d.excess = static_cast<unsigned>(std::abs(d.twos - d.fives));
        d.unit = times(d.r, power(d.prime, d.excess));
    };
    for (const Decimal& d : cell.multiple_of) {
        const Divisor next = divisor(d);
        if (!made.multiple) made.multiple = next;
        else {
            made.multiple->r = times(made.multiple->r / std::gcd(made.multiple->r, next.r), next.r);
            made.multiple->twos = std::max(made.multiple->twos, next.twos);
            made.multiple->fives = std::max(made.multiple->fives, next.fives);
        }
    }
    if (made.multiple) {
        settle(*made.multiple);
        made.whole = made.multiple->twos >= 0 && made.multiple->fives >= 0;
    }
    if (cell.not_multiple_of.size() > kMaxOthers) too_large();
    for (const Decimal& d : cell.not_multiple_of) {
        Divisor other = divisor(d);
        settle(other);
        if (made.multiple) {
            const Divisor& m = *made.multiple;
            const std::uint64_t step =
                times(times(other.r / std::gcd(m.r, other.r), power(2, other.twos - m.twos)), power(5, other.fives - m.fives));
            never |= step == 1;
            made.steps.push_back(step);
        }
        made.others.push_back(other);
    }
    if (never) made.low = {"1", 0, true}, made.high = made.low;  // an empty interval
    return made;
}

// Whether a magnitude is a multiple.
bool NumberLanguage::divides(const Divisor& d, const Bound& m) {
    const std::int64_t exponent = m.place - static_cast<std::int64_t>(m.digits.size()) + 1;
    const std::int64_t scale = exponent - d.tens();
    if (scale < 0) return false;  // m.digits does not end in 0
    // digits * 10^scale is a multiple of unit: of r by the digits, of prime^excess by both.
    unsigned lacking = d.excess;
    for (std::uint64_t rest = remainder(m.digits, d.unit); lacking && rest % d.prime == 0; rest /= d.prime) {
        --lacking;
        if (rest == 0) lacking = 0;
    }
    return remainder(m.digits, d.r) == 0 && scale >= lacking;
}

// Whether a value of the range is between two magnitudes (`to` is excluded if it is open; no digits in `from`: from zero).
bool NumberLanguage::holds_value(const Range& range, const Bound& from, const Bound& to) {
    auto less = [](const Bound& a, const Bound& b) { return a.place != b.place ? a.place < b.place : a.digits < b.digits; };
    auto same = [](const Bound& a, const Bound& b) { return a.place == b.place && a.digits == b.digits; };
    Bound low = from, high = to;
    if (range.low.given()) {
        if (!low.given() || less(low, range.low)) low = range.low;
        else if (same(low, range.low)) low.open |= range.low.open;
    }
    if (range.high.given()) {
        if (!high.given() || less(range.high, high)) high = range.high;
        else if (same(high, range.high)) high.open |= range.high.open;
    }
    if (!high.given()) return true;  // unbounded
    if (low.given() && less(high, low)) return false;
    if (low.given() && same(low, high)) {
        if (low.open || high.open || (range.multiple && !divides(*range.multiple, low))) return false;
        return std::none_of(range.others.begin(), range.others.end(), [&](const Divisor& d) { return divides(d, low); });
    }
    if (!range.multiple) return true;  // decimals are dense
    // In units of 10^tens: the first and last whole multiple.
    const Divisor& m = *range.multiple;
    auto scale_of = [&](const Bound& b) { return b.place - static_cast<std::int64_t>(b.digits.size()) + 1 - m.tens(); };
    // If the bounds are many units from each other, they need not be written as digits, which may be many zeros.
    const bool apart = !low.given() || low.place < high.place - 1 || (scale_of(low) >= kWide && scale_of(high) >= kWide);
    if (apart && high.place - m.tens() > kWide) return true;
    auto quotient = [&](const Bound& b, bool& rest) {
        Digits n = b.digits;
        const std::int64_t scale = scale_of(b);
        if (scale >= 0) n.append(static_cast<std::size_t>(scale), '0');
        else if (static_cast<std::size_t>(-scale) >= n.size()) {
            n.clear();
            rest = true;
        } else {
            n.resize(n.size() - static_cast<std::size_t>(-scale));
            rest = true;
        }
        return divide(n, m.unit, rest);
    };
    bool low_rest = false, high_rest = false;
    Digits first = low.given() ? quotient(low, low_rest) : Digits{}, last = quotient(high, high_rest);
    if (low_rest || low.open || !low.given()) add_one(first);
    if (!high_rest && high.open) {
        if (last.empty()) return false;
        take_one(last);
    }
    for (std::uint64_t i = 0; i < (range.steps.empty() ? 1 : kWindow); ++i, add_one(first)) {
        if (compare(first, last) > 0) return false;
        if (std::none_of(range.steps.begin(), range.steps.end(), [&](std::uint64_t step) { return remainder(first, step) == 0; }))
            return true;
    }
    return true;
}

// Whether a value of the range begins with the digits read.
bool NumberLanguage::possible(const State& s, const Range& range) const {
    const bool plain = specs_[s.spec].plain();
    auto decade = [&](std::int64_t shift) {  // [digits, digits + 1) * 10^shift, with all digits that were read
        Bound from{s.digits, s.length - 1 + shift, false}, to{s.digits, s.length - 1 + shift, true};
        to.digits.append(static_cast<std::size_t>(s.zeros), '0');
        const std::size_t before = to.digits.size();
        add_one(to.digits);
        to.place += static_cast<std::int64_t>(to.digits.size() - before);
        to.digits.erase(to.digits.find_last_not_of('0') + 1);
        return holds_value(range, from, to);
    };
    if (s.zero) {
        if (!plain || s.phase == Phase::start || s.phase == Phase::minus) return holds_value(range, {}, {});
        return !range.whole && holds_value(range, {}, {"1", -s.fraction, true});
    }
    const bool after_point = s.phase == Phase::point || s.phase == Phase::fraction;
    if (plain && after_point) return !range.whole && decade(-s.fraction);
    if (!range.high.given()) return true;
    if (!plain && !range.low.given() && !range.multiple) return true;
    const std::int64_t least = plain ? 0 : -kFar;  // further digits shift up, exponents up or down
    const std::int64_t top = range.high.place - s.length + 1, more = range.steps.empty() ? 2 : 20;
    for (std::int64_t shift = top; shift >= top - more; --shift)
        if (shift >= least && decade(shift)) return true;
    const std::int64_t low_place = range.low.given() ? range.low.place : range.multiple ? range.multiple->tens() : range.high.place;
    const std::int64_t bottom = low_place - s.length + 1;
    for (std::int64_t shift = bottom - 1; shift <= bottom + 1 + (range.low.given() ? 0 : 20); ++shift)
        if (shift >= least && shift < top - more && decade(shift)) return true;
    if (plain && decade(0)) return true;
    return false;
}

ExprId NumberLanguage::start(const List<Cell>& cells, NumberText text) {
    const bool plain = text == NumberText::plain;
    std::string key(1, static_cast<char>('a' + static_cast<int>(text)));
    auto note = [&](const Decimal& d) { key += (d.negative ? "-" : "+") + d.digits + "e" + std::to_string(d.exponent) + ";"; };
    for (const Cell& cell : cells) {
        key += std::to_string(cell.has_low | cell.has_high << 1 | cell.open_low << 2 | cell.open_high << 3) + ":";
        if (cell.has_low) note(cell.low);
        if (cell.has_high) note(cell.high);
        for (const Decimal& d : cell.multiple_of) note(d);
        key += "!";
        for (const Decimal& d : cell.not_multiple_of) note(d);
        key += "|";
    }
    if (auto known = spec_ids_.find(key); known != spec_ids_.end()) return known->second;
    Spec spec;
    spec.text = text;
    spec.cells = cells;
    for (const Cell& cell : cells) {
        auto allows_zero = [&](const Decimal& d, bool open, bool is_low) {
            const bool zero = magnitude(d).digits.empty();
            return zero ? !open : d.negative == is_low;
        };
        const bool zero = (!cell.has_low || allows_zero(cell.low, cell.open_low, true)) &&
                          (!cell.has_high || allows_zero(cell.high, cell.open_high, false)) && cell.not_multiple_of.empty();
        spec.zero |= zero;
        spec.zero_point |= zero && !(plain && range_of(cell, false).whole);
        for (int side = 0; side < 2; ++side) {
            Range range = range_of(cell, side == 1);
            if (range.multiple && range.multiple->r > kMaxRemainders && !range.high.given())
                throw over_limit(kMaxRemainders, "remainders of a divisor of unbounded numbers",
                                 "add a minimum and a maximum, or use a divisor with fewer digits");
            if (holds_value(range, {}, {})) spec.sides[side].push_back(std::move(range));
        }
    }
    exprs_.grew(sizeof(Spec) + (spec.sides[0].size() + spec.sides[1].size()) * sizeof(Range));
    specs_.push_back(std::move(spec));
    State first;
    first.spec = static_cast<std::uint32_t>(specs_.size() - 1);
    const Spec& kept = specs_.back();
    const bool any = kept.zero || !kept.sides[0].empty() || !kept.sides[1].empty();
    const ExprId made = any ? intern(std::move(first)) : kNone;
    exprs_.grew(kNodeBytes + key.size());
    spec_ids_.emplace(std::move(key), made);
    return made;
}

ExprId NumberLanguage::without(ExprId start_state, const Decimal& value) {
    const Spec& spec = specs_[states_[exprs_[start_state].number_state()].spec];
    const NumberText text = spec.text;
    const Cell taken = taken_by(value);
    List<Cell> cells;
    for (const Cell& cell : spec.cells) {  // the parts below and above the value; one of them may be empty
        const bool under = cell.has_high && taken.has_low && less(cell.high, taken.low);
        const bool over = cell.has_low && taken.has_high && less(taken.high, cell.low);
        if (under || over) {
            cells.push_back(cell);
            continue;
        }
        Cell below = cell, above = cell;
        below.has_high = above.has_low = true;
        below.high = taken.low;
        below.open_high = !taken.open_low;
        above.low = taken.high;
        above.open_low = !taken.open_high;
        if (taken.has_low) cells.push_back(std::move(below));
        if (taken.has_high) cells.push_back(std::move(above));
    }
    return start(cells, text);
}

void NumberLanguage::add_digit(State& s, unsigned digit) const {
    if (s.phase == Phase::point || s.phase == Phase::fraction) ++s.fraction;
    if (s.zero && digit == 0) return;
    const auto& ranges = specs_[s.spec].sides[s.negative];
    const auto at = static_cast<std::size_t>(s.length);
    auto order = [&](Order before, const Bound& bound) {
        if (before != Order::equal || !bound.given()) return before;
        const unsigned other = at < bound.digits.size() ? static_cast<unsigned>(bound.digits[at] - '0') : 0;
        return digit < other ? Order::less : digit > other ? Order::greater : Order::equal;
    };
    auto residue = [&](Residue& r, const Divisor& d) {
        r.rest = (r.rest * 10 + digit) % d.unit;
        if (digit == 0) return;
        r.lacking = d.excess;
        for (std::uint64_t rest = r.rest; r.lacking && rest % d.prime == 0; rest /= d.prime) {
            if (rest == 0) r.lacking = 0;
            else --r.lacking;
        }
    };
    for (Live& live : s.live) {
        const Range& range = ranges[live.range];
        live.low = order(live.low, range.low);
        live.high = order(live.high, range.high);
        std::size_t i = 0;
        if (range.multiple) residue(live.residues[i++], *range.multiple);
        for (const Divisor& d : range.others) residue(live.residues[i++], d);
    }
    ++s.length;
    s.zero = false;
    if (digit == 0) ++s.zeros;
    else {
        s.digits.append(static_cast<std::size_t>(s.zeros), '0');
        s.digits.push_back(static_cast<char>('0' + digit));
        s.zeros = 0;
    }
}

bool NumberLanguage::zero_allowed(const State& s) const {
    const bool after_point = s.phase == Phase::point || s.phase == Phase::fraction;
    return s.zero && (after_point ? specs_[s.spec].zero_point : specs_[s.spec].zero);
}

// Removes cells that are not possible. If all values are allowed, the rest is an ordinary expression.
ExprId NumberLanguage::intern(State s) {
    const Spec& spec = specs_[s.spec];
    const auto& ranges = spec.sides[s.negative];
    const bool both_signs = s.phase == Phase::start;
    exprs_.fuel().spend(kStateWork + s.live.size() * (kStateWork + s.digits.size()));
    std::erase_if(s.live, [&](const Live& live) { return !possible(s, ranges[live.range]); });
    if (!both_signs && s.live.empty() && !zero_allowed(s)) return kNone;
    bool digits = false;
    for (const Live& live : s.live) {
        const Range& r = ranges[live.range];
        if (!s.zero && !r.low.given() && !r.high.given() && !r.multiple && r.others.empty()) return free_rest(s);
        digits |= spec.plain() || (r.high.given() && (r.low.given() || r.multiple));
    }
    if (!digits) s.digits.clear();
    if (s.digits.size() > kMaxDigits)
        throw over_limit(kMaxDigits, "digits in a number whose bounds or divisor depend on all digits", "write fewer digits");
    const std::string key = key_of(s);
    if (const auto known = ids_.find(key); known != ids_.end()) return known->second;
    const NumberState id = states_.next();
    states_.push_back(std::move(s));
    exprs_.grew(kNodeBytes + key.size() + sizeof(State) + states_[id].digits.size() + states_[id].live.size() * kLiveBytes);
    return ids_[key] = exprs_.number(id);
}

std::string NumberLanguage::key_of(const State& s) const {
    const auto& ranges = specs_[s.spec].sides[s.negative];
    std::string key;
    auto add = [&](std::int64_t n) { key.append(reinterpret_cast<const char*>(&n), sizeof n); };
    add(s.spec);
    add(static_cast<int>(s.phase) | s.negative << 4 | s.zero << 5);
    bool placed = false, divided = false;
    for (const Live& live : s.live) {
        const Range& r = ranges[live.range];
        placed |= r.low.given() || r.high.given();
        divided |= r.multiple || !r.others.empty();
        add(live.range);
        auto order = [&](Order o, const Bound& b) {
            if (!b.given()) return;
            add(static_cast<int>(o));
            if (o == Order::equal) add(std::min(s.length, static_cast<std::int64_t>(b.digits.size())));
        };
        order(live.low, r.low);
        order(live.high, r.high);
        for (const Residue& residue : live.residues) {
            add(static_cast<std::int64_t>(residue.rest));
            add(residue.lacking);
        }
    }
    add(placed ? s.zero ? s.fraction : s.length - s.fraction : 0);
    add(divided ? s.zeros : 0);
    add(divided ? s.fraction : 0);
    return key;
}

// The exponents that lead from the digits read into a cell.
std::vector<NumberLanguage::Interval> NumberLanguage::exponents(const State& s) const {
    if (s.zero) return zero_allowed(s) ? std::vector<Interval>{{-kFar, kFar}} : std::vector<Interval>{};
    std::vector<Interval> made;
    const std::int64_t place = s.length - 1 - s.fraction;
    for (const Live& live : s.live) {
        const Range& r = specs_[s.spec].sides[s.negative][live.range];
        Interval x{-kFar, kFar};
        auto order = [&](Order o, const Bound& b) {
            return o == Order::equal && s.length < static_cast<std::int64_t>(b.digits.size()) ? Order::less : o;
        };
        if (r.low.given()) {
            const Order o = order(live.low, r.low);
            const bool in = o == Order::greater || (o == Order::equal && !r.low.open);
            x.low = r.low.place - place + (in ? 0 : 1);
        }
        if (r.high.given()) {
            const Order o = order(live.high, r.high);
            const bool in = o == Order::less || (o == Order::equal && !r.high.open);
            x.high = r.high.place - place - (in ? 0 : 1);
        }
        std::size_t i = 0;
        auto from = [&](const Residue& residue, const Divisor& d) {  // the least exponent that makes it a multiple
            return residue.rest % d.r ? kFar + 1 : s.fraction - s.zeros + d.tens() + residue.lacking;
        };
        if (r.multiple) x.low = std::max(x.low, from(live.residues[i++], *r.multiple));
        for (const Divisor& d : r.others) x.high = std::min(x.high, from(live.residues[i++], d) - 1);
        if (x.low <= x.high) made.push_back(x);
    }
    return made;
}

bool NumberLanguage::has_endless_values(NumberState state) const {
    const Spec& spec = specs_[states_[state].spec];
    const auto endless = [](const Range& range) {
        if (!range.high.given()) return true;
        const bool point = range.low.given() && range.low.digits == range.high.digits && range.low.place == range.high.place;
        return !range.multiple && !point;
    };
    return std::any_of(std::begin(spec.sides), std::end(spec.sides),
                       [&](const auto& side) { return std::any_of(side.begin(), side.end(), endless); });
}

std::uint32_t NumberLanguage::digits(NumberState state) const {
    std::uint64_t most = 0;
    for (const Cell& cell : specs_[states_[state].spec].cells) {
        std::uint64_t count = 0;
        auto add = [&](const Decimal& d) { count += d.digits.size() + static_cast<std::uint64_t>(std::abs(d.exponent)); };
        if (cell.has_low) add(cell.low);
        if (cell.has_high) add(cell.high);
        for (const Decimal& d : cell.multiple_of) add(d);
        for (const Decimal& d : cell.not_multiple_of) add(d);
        most = std::max(most, count);
    }
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, kInfinite));
}

// The minimum number of digits after a remainder until the digits are a multiple; `zero`: not of zero. Factors 2 and 5 do not count:
// an exponent or the decimal point can supply them.
std::uint32_t NumberLanguage::digits_to_multiple(const Divisor& d, std::uint64_t rest, bool zero) {
    std::uint32_t count = 0;
    rest %= d.r;
    for (std::uint64_t limit = 1; limit < d.r; limit *= 10, ++count) {  // `limit` numbers follow; r is below kMaxUnit
        if (zero) continue;
        if ((d.r - rest) % d.r < limit) return count;
        rest = rest * 10 % d.r;
    }
    return zero ? std::max(count, 1u) : count;
}

std::uint32_t NumberLanguage::least(NumberState state) const {
    const State& s = states_[state];
    const Spec& spec = specs_[s.spec];
    if (s.zero && (spec.zero || spec.zero_point)) return 0;
    std::uint32_t made = kInfinite;
    auto range = [&](const Range& r, std::uint64_t rest) {
        std::uint32_t count = r.multiple ? digits_to_multiple(*r.multiple, rest, s.zero) : 0;
        const std::int64_t lacking = r.low.given() ? r.low.place + 1 - (s.length - s.fraction) : 0;  // digits before the point
        if (lacking > 0)
            count = std::max(count, static_cast<std::uint32_t>(std::min<std::int64_t>(lacking, spec.plain() ? kInfinite - 1 : 2)));
        made = std::min(made, count);
    };
    if (s.phase == Phase::start || s.phase == Phase::minus) {
        for (int side = s.phase == Phase::minus; side < 2; ++side)
            for (const Range& r : spec.sides[side]) range(r, 0);
        return made == kInfinite ? 0 : made;
    }
    for (const Live& live : s.live) {
        const Range& r = spec.sides[s.negative][live.range];
        range(r, r.multiple ? live.residues[0].rest : 0);
    }
    return made == kInfinite ? 0 : made;
}

bool NumberLanguage::accepting(NumberState state) {
    const State& s = states_[state];
    if (s.phase == Phase::start || s.phase == Phase::minus || s.phase == Phase::point) return false;
    const bool digits_only = s.phase == Phase::zero || s.phase == Phase::integer;
    if (digits_only && specs_[s.spec].text == NumberText::pointed) return false;
    const auto found = exponents(s);
    return std::any_of(found.begin(), found.end(), [](const Interval& x) { return x.low <= 0 && x.high >= 0; });
}

void NumberLanguage::derive(NumberState state, std::array<ExprId, 256>& out) {
    const State s = states_[state];
    const Spec& spec = specs_[s.spec];
    const bool plain = spec.plain();
    auto enter = [&](State next, bool negative) {  // before the first digit: all cells of a side
        next.negative = negative;
        next.live.clear();
        for (std::uint32_t i = 0; i < spec.sides[negative].size(); ++i) {
            const Range& r = spec.sides[negative][i];
            Live live{i, Order::equal, Order::equal, {}};
            live.residues.resize(r.others.size() + (r.multiple ? 1 : 0));
            next.live.push_back(std::move(live));
        }
        return next;
    };
    auto digit = [&](const State& from, unsigned d, Phase phase) {
        State next = from;
        add_digit(next, d);
        next.phase = phase;
        out['0' + d] = intern(std::move(next));
    };
    switch (s.phase) {
        case Phase::start: {
            State minus = enter(s, true);
            minus.phase = Phase::minus;
            out['-'] = intern(std::move(minus));
            [[fallthrough]];
        }
        case Phase::minus: {
            const State first = enter(s, s.phase == Phase::minus);
            digit(first, 0, Phase::zero);
            for (unsigned d = 1; d < 10; ++d) digit(first, d, Phase::integer);
            return;
        }
        case Phase::integer:
            for (unsigned d = 0; d < 10; ++d) digit(s, d, Phase::integer);
            [[fallthrough]];
        case Phase::zero: {
            State next = s;
            next.phase = Phase::point;
            out['.'] = intern(std::move(next));
            break;
        }
        case Phase::point:
        case Phase::fraction:
            for (unsigned d = 0; d < 10; ++d) digit(s, d, Phase::fraction);
            if (s.phase == Phase::point) return;
            break;
    }
    if (!plain) out['e'] = out['E'] = exponent_texts(exponents(s));
}

// The rest of a number if all values are in a cell.
ExprId NumberLanguage::free_rest(const State& s) {
    const ExprId digit = exprs_.set(ByteSet::range('0', '9')), digits = exprs_.repeat(digit, 0, kInfinite),
                 some = exprs_.repeat(digit, 1, kInfinite), sign = exprs_.repeat(exprs_.set(ByteSet::of("+-")), 0, 1);
    const ExprId written = exprs_.concat(exprs_.set(ByteSet::of("eE")), exprs_.concat(sign, some));
    const ExprId exponent = specs_[s.spec].plain() ? kEmpty : exprs_.repeat(written, 0, 1);
    switch (s.phase) {
        case Phase::integer: {
            const ExprId fraction = exprs_.concat(literal(exprs_, "."), some);
            if (specs_[s.spec].text == NumberText::pointed)  // a fraction, or an exponent without one
                return exprs_.concat(digits, exprs_.unite({exprs_.concat(fraction, exponent), written}));
            return exprs_.concat(digits, exprs_.concat(exprs_.repeat(fraction, 0, 1), exponent));
        }
        case Phase::point: return exprs_.concat(some, exponent);
        default: return exprs_.concat(digits, exponent);
    }
}

// Digits (with any number of leading zeros) of the numbers low..high, which are not negative.
ExprId NumberLanguage::counting_texts(std::int64_t low, std::int64_t high) {
    auto byte_range = [&](char a, char b) {
        return exprs_.set(ByteSet::range(static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b)));
    };
    const ExprId digit = byte_range('0', '9');
    std::vector<ExprId> parts;
    auto add = [&](const std::string& head, char from, char to, std::size_t more) {
        ExprId made = exprs_.repeat(digit, static_cast<std::uint32_t>(more), static_cast<std::uint32_t>(more));
        made = exprs_.concat(byte_range(from, to), made);
        for (std::size_t i = head.size(); i-- > 0;) made = exprs_.concat(byte_range(head[i], head[i]), made);
        parts.push_back(made);
    };
    // Numbers from a to b, which have equal numbers of digits.
    auto span = [&](const std::string& a, const std::string& b) {
        std::size_t shared = 0;
        while (shared < a.size() && a[shared] == b[shared]) ++shared;
        if (shared == a.size()) return add(a.substr(0, a.size() - 1), a.back(), a.back(), 0);
        for (std::size_t i = shared; i < a.size(); ++i) {
            const std::size_t more = a.size() - 1 - i;
            const bool last = more == 0;
            if (i == shared) {
                const char from = static_cast<char>(a[i] + (last ? 0 : 1)), to = static_cast<char>(b[i] - (last ? 0 : 1));
                if (from <= to) add(a.substr(0, i), from, to, more);
                continue;
            }
            const char from = static_cast<char>(a[i] + (last ? 0 : 1)), to = static_cast<char>(b[i] - (last ? 0 : 1));
            if (from <= '9') add(a.substr(0, i), from, '9', more);
            if ('0' <= to) add(b.substr(0, i), '0', to, more);
        }
    };
    const std::string first = std::to_string(low);
    for (std::size_t size = first.size();; ++size) {
        std::string from = first;
        if (size > first.size()) {  // 10...0, in two steps, since gcc 12 gives a false warning (-Wrestrict) for "1" + string
            from.assign(size, '0');
            from.front() = '1';
        }
        if (high >= kFar) {  // unbounded: all longer numbers too
            span(from, std::string(size, '9'));
            parts.push_back(exprs_.concat(byte_range('1', '9'), exprs_.repeat(digit, static_cast<std::uint32_t>(size), kInfinite)));
            break;
        }
        const std::string last = std::to_string(high);
        span(from, size == last.size() ? last : std::string(size, '9'));
        if (size == last.size()) break;
    }
    const ExprId zeros = exprs_.repeat(byte_range('0', '0'), 0, kInfinite);
    return exprs_.concat(zeros, exprs_.unite(std::move(parts)));
}

ExprId NumberLanguage::exponent_texts(std::vector<Interval> intervals) {
    std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.low < b.low; });
    std::string key;
    for (const Interval& x : intervals) key += std::to_string(std::max(x.low, -kFar)) + ":" + std::to_string(std::min(x.high, kFar)) + ";";
    if (const auto known = exponent_ids_.find(key); known != exponent_ids_.end()) return known->second;
    std::vector<ExprId> parts;
    const ExprId plus = exprs_.repeat(literal(exprs_, "+"), 0, 1), minus = literal(exprs_, "-");
    for (const Interval& x : intervals) {
        if (x.high >= 0) parts.push_back(exprs_.concat(plus, counting_texts(std::max<std::int64_t>(x.low, 0), std::min(x.high, kFar))));
        if (x.low <= 0) parts.push_back(exprs_.concat(minus, counting_texts(std::max<std::int64_t>(-x.high, 0), std::min(-x.low, kFar))));
    }
    exprs_.grew(kNodeBytes + key.size());
    return exponent_ids_[key] = exprs_.unite(std::move(parts));
}

}  // namespace guideway
