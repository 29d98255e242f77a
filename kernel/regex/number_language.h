// JSON numbers whose exact value is in one of some cells (decimal.h), read digit by digit.
//
// For the user: `start` returns the state before the first digit. A state is an expression of the pool (Op::number), like other
// leaves, and can be completed unless it is kNone. Values are exact decimals of any size; all JSON spellings are accepted (1.0,
// 1e2, -0, 10E-1), with NumberText::plain only those without an exponent, and without a fraction if the cell has only integers,
// with NumberText::pointed only those with a fraction or an exponent.
//
// For the maintainer: before the exponent, the state depends, for each cell that is still possible, on how the digits compare
// with those of its bounds, on their remainders by its divisors, and on the position of the decimal point. A cell is possible
// if a value in it begins with these digits, in some decade; since ten times a value begins with the same digits, a few decades
// at the ends of the interval are enough to decide it. From the exponent on, the rest is a regular expression: the exponents
// that lead into a cell are an interval.
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

    // Throws Error(limit) for bounds or divisors that are too large; kNone: there is no such number.
    ExprId start(const List<Cell>& cells, NumberText text);

    // The numbers of a `start` state without one value (and those that are not distinguished from it).
    ExprId without(ExprId start, const Decimal& value);

    // Whether a cell of a `start` state has infinitely many values, by a sufficient condition.
    bool has_endless_values(NumberState state) const;

    // The maximum number of digits of the bounds and divisors of a cell of the state, written without exponents.
    std::uint32_t digits(NumberState state) const;

    // A lower bound of the length of a completion, from the remainders and the lower bounds of the cells.
    std::uint32_t least(NumberState state) const;

    // For the pool: properties of the state of a number expression.
    bool accepting(NumberState state);
    void derive(NumberState state, std::array<ExprId, 256>& out);

private:
    // r * 2^twos * 5^fives, r not divisible by 2 or 5; as an integer, unit * 10^tens with unit not divisible by 10.
    struct Divisor {
        std::uint64_t r = 1, unit = 1;
        std::int64_t twos = 0, fives = 0;
        unsigned prime = 2, excess = 0;  // unit is r * prime^excess
        std::int64_t tens() const { return std::min(twos, fives); }
    };
    struct Bound {  // a magnitude: 0.d1d2d3... * 10^(place + 1), without leading or trailing zeros; no digits: there is no bound
        std::string digits;
        std::int64_t place = 0;
        bool open = false;
        bool given() const { return !digits.empty(); }
    };
    struct Range {  // the part of a cell on one side of zero
        Bound low, high;
        std::optional<Divisor> multiple;
        std::vector<Divisor> others;       // values are no multiples of these
        std::vector<std::uint64_t> steps;  // by divisor in `others`: it divides n * multiple if this divides n
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
    enum class Order : std::uint8_t { equal, less, greater };  // of the digits read, compared with as many digits of a bound
    struct Residue {
        std::uint64_t rest = 0;
        unsigned lacking = 0;  // number of factors `prime` that the digits without trailing zeros lack
    };
    struct Live {
        std::uint32_t range;
        Order low = Order::equal, high = Order::equal;
        std::vector<Residue> residues;  // by the multiple, then by the others
    };
    struct State {
        std::uint32_t spec = 0;
        Phase phase = Phase::start;
        bool negative = false, zero = true;  // zero: only digits 0 were read
        std::int64_t length = 0, fraction = 0,
                     zeros = 0;  // numbers of significant digits, of digits after the point, and of trailing zeros
        std::vector<Live> live;
        std::string digits;  // without trailing zeros; empty if no cell needs them
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
    IdVector<NumberState, State> states_;
    std::unordered_map<std::string, ExprId> ids_, spec_ids_;
    std::unordered_map<std::string, ExprId> exponent_ids_;
};

}  // namespace guideway
