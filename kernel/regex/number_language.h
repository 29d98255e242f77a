// JSON numbers whose exact value lies in one of some cells, read digit by digit.
//
// For the user: `start` gives the state of no digit read; a state is an expression of the pool (Op::number), so it is a
// leaf like any other, and a state that exists can be completed. Values are exact decimals of any size; every JSON
// spelling counts (1.0, 1e2, -0, 10E-1), with NumberText::plain only those without an exponent, and without a fraction
// where the cell is whole, with NumberText::pointed only those with a fraction or an exponent.
//
// For the maintainer: before the exponent, what matters of the digits read is, for each cell that can still be met: how
// they compare with the digits of its bounds, their remainder by its divisors, and where the decimal point is.
// States with equal such facts are one state. A cell can be met if a value in it begins with these digits, in some
// decade; since a value times ten begins with the same digits, a few decades at the ends of the interval tell. From the
// exponent on the rest is a regular expression: the exponents that lead into a cell are an interval.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "guideway/base/small_list.h"
#include "guideway/regex/decimal.h"
#include "guideway/regex/expr.h"

namespace guideway {

class NumberLanguage {
public:
    explicit NumberLanguage(ExprTable& exprs) : exprs_(exprs) {}

    // Throws Error(limit) for bounds or divisors too large to count with; kNone: no number fits.
    ExprId start(const List<Cell>& cells, NumberText text);

    // The numbers of a `start` state but one value (and what is not distinguished from it).
    ExprId without(ExprId start, const Decimal& value);

    // Whether endlessly many values are in a cell, of the state of no digit read, as far as is plain.
    bool has_endless_values(std::uint32_t state) const;

    // How many digits the bounds and divisors of a state's cells have at most, written without exponents.
    std::uint32_t digits(std::uint32_t state) const;

    // A lower bound of the bytes that a state still needs, by the remainders and the lower bounds of its cells.
    std::uint32_t least(std::uint32_t state) const;

    // For the pool, of the state that a number expression represents.
    bool accepting(std::uint32_t state);
    void derive(std::uint32_t state, std::array<ExprId, 256>& out);

private:
    // r * 2^twos * 5^fives, r not divisible by 2 or 5; as an integer, unit * 10^tens with unit not divisible by 10.
    struct Divisor {
        std::uint64_t r = 1, unit = 1;
        std::int64_t twos = 0, fives = 0;
        unsigned prime = 2, excess = 0;  // unit is r * prime^excess
        std::int64_t tens() const { return std::min(twos, fives); }
    };
    struct Bound {  // of a magnitude: 0.d1d2d3... * 10^(place + 1), no zeros at either end; no digits: there is none
        std::string digits;
        std::int64_t place = 0;
        bool open = false;
        bool given() const { return !digits.empty(); }
    };
    struct Range {  // a cell on one side of zero
        Bound low, high;
        std::optional<Divisor> multiple;
        std::vector<Divisor> others;       // it is no multiple of these
        std::vector<std::uint64_t> steps;  // of others, in multiples of `multiple`
        bool whole = false;
    };
    struct Spec {
        NumberText text = NumberText::any;
        bool plain() const { return text == NumberText::plain; }
        bool zero = false, zero_point = false;  // zero_point: also as 0.0
        std::vector<Range> sides[2];            // above zero, below
        List<Cell> cells;
    };
    enum class Phase : std::uint8_t { start, minus, zero, integer, point, fraction };
    enum class Order : std::uint8_t { equal, less, greater };  // the digits read, to as many of a bound
    struct Residue {
        std::uint64_t rest = 0;
        unsigned lacking = 0;  // factors `prime` that the digits without their zeros lack
    };
    struct Live {
        std::uint32_t range;
        Order low = Order::equal, high = Order::equal;
        std::vector<Residue> residues;  // by the multiple, then by the others
    };
    struct State {
        std::uint32_t spec = 0;
        Phase phase = Phase::start;
        bool negative = false, zero = true;                // zero: no digit but 0 was read
        std::int64_t length = 0, fraction = 0, zeros = 0;  // significant digits, those after the point, zeros at the end
        std::vector<Live> live;
        std::string digits;  // without zeros at the end; only where a cell needs them
    };
    struct Interval {
        std::int64_t low, high;
    };

    Range range_of(const Cell& cell, bool negative) const;
    static bool divides(const Divisor& d, const Bound& magnitude);
    ExprId intern(State made);
    std::string key_of(const State& s) const;
    bool possible(const State& s, const Range& range) const;
    static bool holds_value(const Range& range, const Bound& from, const Bound& to);
    void add_digit(State& s, unsigned digit) const;
    std::vector<Interval> exponents(const State& s) const;
    ExprId exponent_texts(std::vector<Interval> intervals);
    ExprId counting_texts(std::int64_t low, std::int64_t high);
    ExprId free_rest(const State& s);
    static std::uint32_t digits_to_multiple(const Divisor& d, std::uint64_t rest, bool zero);
    bool zero_allowed(const State& s) const;

    ExprTable& exprs_;
    std::vector<Spec> specs_;
    std::vector<State> states_;
    std::unordered_map<std::string, ExprId> ids_, spec_ids_;
    std::unordered_map<std::string, ExprId> exponent_ids_;
};

}  // namespace guideway
