// Which atoms of the subtree alphabets (subtree_alphabets.h) lead an expression's state back to itself, or to given states.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "guideway/regex/expr_pool.h"
#include "guideway/vocabulary/subtree_alphabets.h"

namespace guideway {

// The self-loops of a state. An atom that leads to a sum with the state as a summand counts too, unless `exact`.
SelfLoops loops_of(const SubtreeAlphabets& subtrees, ExprPool& pool, ExprId state, bool exact);

// The blocks that lead from a state to states for which `good` holds, as bits. A block that ends inside a character counts
// if inside(state, bytes left) holds, by default always.
std::vector<std::uint64_t> blocks_to(const SubtreeAlphabets& subtrees, ExprPool& pool, ExprId state,
                                     const std::function<bool(ExprId)>& good, const std::function<bool(ExprId, unsigned)>& inside = {});

}  // namespace guideway
