// Walks a token trie along the keys of an object, which are a set of texts (string_trie.h), without derivatives.
//
// The keys from one state on are sorted by text, so the keys that a token can continue as are a range, and the size of the
// result does not depend on the number of keys in the ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "guideway/mask/leaf_walk.h"
#include "guideway/regex/expr_pool.h"

namespace guideway {

struct KeyWalk {
    struct Place {  // the tokens that end at `node` can continue as the keys [first, last)
        std::uint32_t first, last, node;
    };
    struct Exit {  // the key number `key` ends at `node`, with its quote; the tokens of the node are also a place
        std::uint32_t key, node;
    };
    std::vector<std::uint32_t> labels;  // by number of key: its label. Keys are numbered in the order of their texts
    std::vector<Place> places;
    std::vector<Exit> exits;

    // Replaces the results. Returns false if the state is not a set of texts that each end with a quote and a label.
    bool run(ExprPool& pool, const TrieForest& forest, ExprId state);
};

}  // namespace guideway
