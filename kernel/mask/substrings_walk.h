// How a trie is walked along the substrings of a text (substrings.h), alone or before the quote that ends a JSON string: no
// expression is made of what lies between.
#pragma once

#include <cstdint>

#include "guideway/mask/leaf_walk.h"
#include "guideway/regex/expr_pool.h"

namespace guideway {

// Whether `walk_substrings` walks from the state.
bool is_substring_leaf(const ExprPool& pool, ExprId state);
// Where a state is in a string that occurs in a text: outside, before its first character, or after that.
enum class Quotation : std::uint8_t { none, begins, inside };
Quotation quotation_at(ExprPool& pool, ExprId state);
// False: it is no such state.
bool walk_substrings(ExprPool& pool, const TrieForest& forest, ExprId start, const ByteSet& follow, LeafWalk& made);

}  // namespace guideway
