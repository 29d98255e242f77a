// Expressions with simpler repetition bounds, that few texts distinguish from the original.
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
    std::uint32_t loop_body = 0;  // of `without_loop_bounds`: the newest one whose bounds are gone
};

class Supersets {
public:
    Supersets(ExprTable& exprs, LazyDfa& dfa) : exprs_(exprs), dfa_(dfa) {}

    // Of a repetition, and a product that begins with one: the same without bounds, and how many more may come.
    struct Unbounded {
        ExprId expr;
        std::uint32_t left;
    };
    Unbounded unbounded(ExprId e);
    // An expression that no text of up to `reach` bytes can tell from e: whether it can be completed after it, and
    // whether it is complete. Bounds of repetitions out of its reach are the same for all; not for boolean ones.
    // `name_bodies`: what is no longer counted becomes a loop body.
    ExprId saturate_counters(ExprId e, std::uint32_t reach, bool name_bodies);
    // e without repetition bounds above kNear, and without complements of longer texts only.
    Superset superset(ExprId e);
    // e without the bounds of loop bodies. Both accept the same continuations, and are complete, after a text that begins at
    // most `exact_up_to` iterations.
    Superset without_loop_bounds(ExprId e);
    std::uint32_t loop_bodies() const { return static_cast<std::uint32_t>(exprs_.loop_bodies().size()); }
    // The bytes with which an iteration of a loop body may begin next; all, where too much may begin.
    ByteSet iterations_begin(ExprId e);
    std::size_t bytes() const { return saturated_.bytes() + known_.bytes(); }

private:
    enum class Bounds : std::uint8_t { far, far_inside, of_bodies };  // far_inside: in a Boolean one
    Superset relax(ExprId e, Bounds which, const std::vector<Superset>& parts);
    Superset find(ExprId e, Bounds which);

    ExprTable& exprs_;
    LazyDfa& dfa_;
    FlatMap<std::uint64_t, ExprId, NumberHash> saturated_;  // by reach, whether bodies are named, and expression
    FlatMap<std::uint64_t, Superset, NumberHash> known_;    // by expression, and which bounds
};

}  // namespace guideway
