// How a trie is walked over the names of an object, character by character; no expression is made.
//
// The names below a state are in the order of their texts, so those that a token may lead on to lie side by side: what is
// noted of a token costs the same however many they are.
#pragma once

#include <cstdint>
#include <vector>

#include "guideway/mask/leaf_walk.h"
#include "guideway/regex/expr_pool.h"

namespace guideway {

struct KeyWalk {
    struct Place {  // tokens that end at a node lead on to the names [first, last)
        std::uint32_t first, last, node;
    };
    struct Exit {  // a name has ended at a node, whose tokens are among the places too
        std::uint32_t name, node;
    };
    std::vector<std::uint32_t> labels;  // of the names
    std::vector<Place> places;
    std::vector<Exit> exits;

    // False: the state is no set of texts, each with a quote and a label after it.
    bool run(ExprPool& pool, const TrieForest& forest, ExprId state);
};

}  // namespace guideway
