// Function summaries in grammars that share stacks (`Machine::shares_stacks`): the result of a suffix trie in the rest
// of a sequence. It does not depend on the stack, so all nestings share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "guideway/mask/leaf_results.h"

namespace guideway {

struct FrameSummary {
    std::vector<TokenSetId> sets;
    std::vector<TrieId> exits;
    std::vector<std::uint32_t> context_dependent;  // tokens that depend on more context
    std::uint32_t last_use = 0;                    // by `ResultCounters::result_clock`
    bool incomplete = true;                        // its computation is not complete
    std::size_t bytes() const {
        return sizeof(FrameSummary) + sizeof(ResultKey) + 48 +
               (sets.size() + exits.size() + context_dependent.size()) * sizeof(std::uint32_t);
    }
};

class FrameSummaries {
public:
    explicit FrameSummaries(LeafResults& results) : results_(results) {}

    std::unordered_map<ResultKey, FrameSummary, ResultKeyHash> known;

    // Replaces sorted sets by one set of all their tokens: a mask is written set by set.
    void join(std::vector<TokenSetId>& sets);
    void append_last_uses(std::vector<std::uint32_t>& times) const;
    void drop_before(std::uint32_t time, std::vector<bool>& sets, std::vector<bool>& tries);
    void clear();

private:
    TokenSetId joined(const std::vector<TokenSetId>& sets);

    LeafResults& results_;
    std::map<std::vector<TokenSetId>, TokenSetId> joined_;  // by lists of token sets: the set of all their tokens
};

}  // namespace guideway
