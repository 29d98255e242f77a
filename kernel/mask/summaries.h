// Function summaries of grammars that share stacks (`Machine::shares_stacks`): the result of a suffix trie in the rest
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
    std::vector<std::uint32_t> sets, exits, context_dependent;  // token sets; suffix tries; tokens that depend on more context
    std::uint32_t time = 0;
    bool open = true;  // its computation is not complete
    std::size_t bytes() const {
        return sizeof(FrameSummary) + sizeof(ResultKey) + 48 +
               (sets.size() + exits.size() + context_dependent.size()) * sizeof(std::uint32_t);
    }
};

class FrameSummaries {
public:
    explicit FrameSummaries(LeafResults& results) : results_(results) {}

    std::unordered_map<ResultKey, FrameSummary, ResultKeyHash> known;

    // Joins many sets, in order, into one: a mask is written set by set.
    void join(std::vector<std::uint32_t>& sets);
    void times(std::vector<std::uint32_t>& times) const;
    void drop_before(std::uint32_t time, std::vector<bool>& sets, std::vector<bool>& tries);
    void clear();

private:
    std::uint32_t joined(const std::vector<std::uint32_t>& sets);

    LeafResults& results_;
    std::map<std::vector<std::uint32_t>, std::uint32_t> joined_;  // by token sets: one of all their tokens
};

}  // namespace guideway
