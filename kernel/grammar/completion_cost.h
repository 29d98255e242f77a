// Shortest completions of objects and arrays with limits on the number of entries, required entries, demands or counters.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/grammar/program.h"
#include "guideway/grammar/used_values.h"

namespace guideway {

// The lengths of the shortest texts of classes of open keys, or of items. Texts of equal value count once.
class KeyLengths {
public:
    KeyLengths(ExprPool& pool, UsedValues& texts) : pool_(pool), texts_(texts) {}

    // The lengths of the `count` shortest texts that are not in the set `used`; fewer, if there are no more. Throws Error(limit).
    const std::vector<std::uint32_t>& of(const std::vector<ExprId>& classes, ValueSet used, std::size_t count) {
        return known(classes, used, count).lengths;
    }
    // Whether more than `count` texts are not in the set `used`.
    bool has_more(const std::vector<ExprId>& classes, ValueSet used, std::size_t count);
    bool has_more(ExprId keys, ValueSet used, std::size_t count);
    // The union of `used` and at least the `count` shortest other texts; kAllTexts: there are too many to compute.
    ValueSet texts(const std::vector<ExprId>& classes, ValueSet used, std::size_t count);

private:
    struct Known {
        ValueSet used;  // the texts that were found, and those used before
        bool ended;     // `lengths` has all texts
        std::vector<std::uint32_t> lengths;
    };
    const Known& known(const std::vector<ExprId>& classes, ValueSet used, std::size_t count);

    ExprPool& pool_;
    UsedValues& texts_;
    static constexpr std::size_t kMostKept = std::size_t{1} << 18;  // approximate size of `known_`, above which it is emptied
    std::map<std::vector<ExprId>, Known> known_;
    std::size_t kept_ = 0;
};

struct CostItem {  // an entry that can occur once
    bool required;
    std::uint64_t missing = 0;                                  // the marks that count if it does not occur
    std::vector<std::pair<std::uint64_t, std::uint32_t>> ways;  // the marks and the cost of each reading
};

// The maximum number of entries of a cheapest choice. It limits how many open keys must be considered.
std::uint32_t most_needed(std::uint32_t required, std::uint32_t need, std::uint32_t room, std::uint64_t demands);

struct MarksNeeded {  // `least` to `most` different marks of `demands` must count; those in `met` count already
    std::uint64_t demands = 0;
    std::uint32_t least = 0, most = 0;
    std::uint64_t met = 0;
    bool allows(std::uint64_t marks) const {
        const auto count = static_cast<std::uint32_t>(std::popcount(demands & marks));
        return least <= count && count <= most;
    }
};

// The least cost of a choice of items: `need` to `room` of them, all required ones, with the needed marks; kInfinite: there is
// none. Throws Error(limit) for `node` if there are too many combinations.
std::uint32_t plan(const std::vector<CostItem>& items, std::uint32_t need, std::uint32_t room, const MarksNeeded& marks, NodeId node,
                   Fuel& work);

// The least cost of the remaining items of an array with counters, each with a comma, by the number of items and the number of
// items of each mark (up to the numbers from which on nothing changes).
class ItemCosts {
public:
    using Point = std::vector<std::uint32_t>;
    struct Option {  // a reading of an item
        std::uint32_t marks, cost;
    };
    // `options(i)`: of the item after i others. Throws Error(limit) for `node` if there are too many combinations of counts.
    template <class F>
    ItemCosts(const Node& array, std::uint32_t comma, NodeId node, Fuel& work, F&& options) {
        const std::size_t known = array.prefix.size();
        for (std::size_t i = 0; i <= known; ++i) options_.push_back(options(static_cast<std::uint32_t>(i)));
        solve(array, comma, node, work);
    }
    std::uint32_t cost(const Point& at) const {
        auto found = costs_.find(at);
        return found == costs_.end() ? kInfinite : found->second;
    }
    // Adds an item with these marks to `at`; false: a maximum does not allow it.
    static bool advance(const Node& array, Point& at, std::uint32_t marks);

private:
    void solve(const Node& array, std::uint32_t comma, NodeId node, Fuel& work);

    std::vector<std::vector<Option>> options_;
    std::map<Point, std::uint32_t> costs_;
};

}  // namespace guideway
