// Languages that an expression table contains but whose automata are implemented by a higher layer: JSON arrays and objects as
// values (grammar layer). A state is a number, and an expression (Op::composite) names it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "guideway/base/byte_set.h"
#include "guideway/regex/expr.h"

namespace guideway {

class ExternalLanguage {
public:
    ExternalLanguage() = default;
    ExternalLanguage(const ExternalLanguage&) = delete;
    ExternalLanguage& operator=(const ExternalLanguage&) = delete;
    virtual ~ExternalLanguage() = default;

    virtual bool accepting(CompositeState state) const = 0;
    // Whether all texts of the state are encodings of one value.
    virtual bool single(CompositeState state) const = 0;
    // A lower bound of the number of different values, from the start; kInfinite: infinitely many.
    virtual std::uint32_t at_least(CompositeState state) const = 0;
    // A bound for searches. For the expression of one given value (`single`): its length as it was written. For others: if the
    // language has a value other than some given ones, it has a text of one that is at most this much longer than the longest of them.
    virtual std::uint32_t reach(CompositeState state) const = 0;
    // Length of the completion that `best_byte` begins.
    virtual std::uint32_t shortest(CompositeState state) = 0;
    virtual int best_byte(CompositeState state) = 0;
    // The derivative.
    virtual ExprId next(CompositeState state, std::uint8_t byte) = 0;
    // A superset of the bytes that can come next.
    virtual ByteSet begins(CompositeState state) = 0;
    // All derivatives.
    virtual void derive(CompositeState state, std::array<ExprId, 256>& out) = 0;
    virtual std::size_t bytes() const = 0;
};

}  // namespace guideway
