// Walks a trie and the substrings of a text (substrings.h) in parallel, alone or before the quote that ends a JSON string, without
// an expression for each state between.
#pragma once

#include <cstdint>

#include "guideway/mask/leaf_walk.h"
#include "guideway/regex/expr_pool.h"

namespace guideway {

// Whether `walk_substrings` walks from the state.
bool is_substring_leaf(const ExprPool& pool, ExprId state);
// The position of a state in a substring of a text: in none, before its first character, or after that.
enum class Quotation : std::uint8_t { none, begins, inside };
Quotation quotation_at(ExprPool& pool, ExprId state);
// Returns false if the state is no `is_substring_leaf`.
bool walk_substrings(ExprPool& pool, const TrieForest& forest, ExprId start, const ByteSet& follow, LeafWalk& made);

}  // namespace guideway
