// Expressions with simpler repetition bounds, which are equal to the original for all but long texts.
//
// A loop body is the r of r{m,n} whose upper bound `saturate_counters` removed, if its texts have two bytes or more. Bodies
// are numbered from 1 on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "guideway/regex/lazy_dfa.h"

namespace guideway {

// A superset of an expression. Without intersection and complement, both accept continuations of the same texts of up to
// min(`exact_up_to`, `early`) bytes. With them, the length of a shortest completion in the superset counts, too.
struct Superset {
    ExprId expr;
    std::uint32_t exact_up_to = kInfinite, early = kInfinite;
    std::uint32_t loop_body = 0;  // of `without_loop_bounds`: the greatest number of a body whose bounds were removed
};

class Supersets {
public:
    Supersets(ExprTable& exprs, LazyDfa& dfa) : exprs_(exprs), dfa_(dfa) {}

    // A repetition, or a concatenation that begins with one, without bounds; `left`: how many more iterations it allowed.
    struct Unbounded {
        ExprId expr;
        std::uint32_t left;
    };
    Unbounded unbounded(ExprId e);
    // An expression that accepts the same texts, and the same beginnings of texts, of up to `reach` bytes as e. Large repetition bounds are
    // replaced by equal ones; not in boolean parts. `name_bodies`: bodies whose upper bound was removed become loop bodies.
    ExprId saturate_counters(ExprId e, std::uint32_t reach, bool name_bodies);
    // e without repetition bounds above kNear, and without complements of longer texts only.
    Superset superset(ExprId e);
    // e without the bounds of loop bodies. Both accept the same continuations, and are complete, after a text that begins at
    // most `exact_up_to` iterations.
    Superset without_loop_bounds(ExprId e);
    std::uint32_t loop_bodies() const { return static_cast<std::uint32_t>(exprs_.loop_bodies().size()); }
    // A superset of the bytes with which an iteration of a loop body can begin next.
    ByteSet iterations_begin(ExprId e);
    std::size_t bytes() const { return saturated_.bytes() + known_.bytes(); }

private:
    enum class Bounds : std::uint8_t { far, far_inside, of_bodies };  // far_inside: in a boolean expression
    Superset relax(ExprId e, Bounds which, const std::vector<Superset>& parts);
    Superset find(ExprId e, Bounds which);

    ExprTable& exprs_;
    LazyDfa& dfa_;
    FlatMap<std::uint64_t, ExprId, NumberHash> saturated_;  // by reach, `name_bodies` and expression
    FlatMap<std::uint64_t, Superset, NumberHash> known_;    // by expression and kind of bounds
};

}  // namespace guideway
