// Punctuation and the white space before it as leaves, which all objects and arrays share, with their results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/mask/leaf_results.h"

namespace guideway {

class PunctuationLeaves {
public:
    explicit PunctuationLeaves(LeafResults& results) : results_(results) {}

    // The result of a trie in the leaf of a text, perhaps after white space, that these bytes can follow.
    const WalkResult& result(ExprPool& pool, TrieId trie, std::string_view text, bool spaced, const ByteSet& follow);
    // A set that contains these bytes, for `follow`: equal for many places in grammars, so that they share results.
    static ByteSet canonical(const ByteSet& bytes);
    std::size_t size() const { return leaves_.size(); }
    void clear() { leaves_.clear(); }

private:
    struct Leaf {  // `ids`: its numbers in the keys of results, by the bytes that can follow it
        std::string text;
        bool spaced;
        ExprId expr;
        std::vector<std::pair<ByteSet, ComponentId>> ids;
    };
    // Maximum number of leaves, and of sets of bytes that follow one. All leaves, or all sets of a leaf, are dropped when it is reached.
    static constexpr std::size_t kMostMarks = 64, kMostFollows = 64;

    Leaf& leaf(ExprPool& pool, std::string_view text, bool spaced);

    LeafResults& results_;
    std::vector<Leaf> leaves_;
};

}  // namespace guideway
