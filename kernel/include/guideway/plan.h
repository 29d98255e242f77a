// Which entries an object still needs: enough of them, not too many, all required ones, and one for each demand.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/texts.h"

namespace guideway {

// The lengths of the shortest keys of classes of open keys; equal classes are counted once.
class KeyLengths {
public:
    KeyLengths(ExprPool& pool, TextSets& texts) : pool_(pool), texts_(texts) {}

    // Of the `count` shortest keys that are not in the set `used`; fewer: there are no more. Throws Error(limit).
    const std::vector<std::uint32_t>& of(ExprId keys, std::uint32_t used, std::size_t count);

private:
    struct Known {
        std::uint32_t used;  // the keys that were counted
        bool ended;
        std::vector<std::uint32_t> lengths;
    };
    ExprPool& pool_;
    TextSets& texts_;
    std::unordered_map<ExprId, Known> known_;
};

struct PlanItem {  // an entry that may come, once
    bool required;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ways;  // the marks that it then bears, and what it costs
};

// The most entries that a cheapest choice has; more open keys need not be offered.
std::uint32_t most_needed(std::uint32_t required, std::uint32_t need, std::uint32_t room, std::uint32_t demands);

// The least cost of a choice of items: `need` to `room` of them, all required ones, every bit of `demands` among their
// marks; kInfinite: there is none. Throws Error(limit) for `node` where too much would have to be weighed.
std::uint32_t plan(const std::vector<PlanItem>& items, std::uint32_t need, std::uint32_t room, std::uint32_t demands, std::uint32_t node);

}  // namespace guideway
