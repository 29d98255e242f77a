// Which entries an object still needs: enough of them, not too many, all required ones, and one for each demand.
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

// The lengths of the shortest texts of classes of open keys, or of items; what is equal is counted once.
class KeyLengths {
public:
    KeyLengths(ExprPool& pool, UsedValues& texts) : pool_(pool), texts_(texts) {}

    // Of the `count` shortest that are not in the set `used`; fewer: there are no more. Throws Error(limit).
    const std::vector<std::uint32_t>& of(const std::vector<ExprId>& classes, std::uint32_t used, std::size_t count);
    // Whether more than this many are not in the set `used`.
    bool has_more(const std::vector<ExprId>& classes, std::uint32_t used, std::size_t count);
    bool has_more(ExprId keys, std::uint32_t used, std::size_t count);
    // The set of these texts and of `used`, perhaps with more; kInfinite: they are too many to be looked for.
    std::uint32_t texts(const std::vector<ExprId>& classes, std::uint32_t used, std::size_t count);
    const std::vector<std::uint32_t>& of(ExprId keys, std::uint32_t used, std::size_t count) {
        return of(std::vector<ExprId>{keys}, used, count);
    }

private:
    struct Known {
        std::uint32_t used;  // the texts that were counted
        bool ended;
        std::vector<std::uint32_t> lengths;
    };
    const Known& known(const std::vector<ExprId>& classes, std::uint32_t used, std::size_t count);

    ExprPool& pool_;
    UsedValues& texts_;
    static constexpr std::size_t kMostKept = std::size_t{1} << 18;  // numbers in `known_`, about; then it is found anew
    std::map<std::vector<ExprId>, Known> known_;
    std::size_t kept_ = 0;
};

struct CostItem {  // an entry that may come, once
    bool required;
    std::uint64_t missing = 0;                                  // the marks that count if it does not come
    std::vector<std::pair<std::uint64_t, std::uint32_t>> ways;  // the marks that it then bears, and what it costs
};

// The most entries that a cheapest choice has; more open keys need not be offered.
std::uint32_t most_needed(std::uint32_t required, std::uint32_t need, std::uint32_t room, std::uint64_t demands);

struct MarksNeeded {  // of the marks `demands`, `least` to `most` different ones must count; those of `met` count already
    std::uint64_t demands = 0;
    std::uint32_t least = 0, most = 0;
    std::uint64_t met = 0;
    bool allows(std::uint64_t marks) const {
        const auto count = static_cast<std::uint32_t>(std::popcount(demands & marks));
        return least <= count && count <= most;
    }
};

// The least cost of a choice of items: `need` to `room` of them, all required ones, with the marks that are needed;
// kInfinite: there is none. Throws Error(limit) for `node` where too much would have to be weighed.
std::uint32_t plan(const std::vector<CostItem>& items, std::uint32_t need, std::uint32_t room, const MarksNeeded& marks, std::uint32_t node,
                   Fuel& work);

// What is left to do in an array with counters: by [items so far, how many of them bear each mark], as far as they
// matter, the least cost of the items still needed, each with a comma.
class ItemCosts {
public:
    using Point = std::vector<std::uint32_t>;
    struct Option {  // a way to read an item
        std::uint32_t marks, cost;
    };
    // `options(i)`: of the item after i others. Throws Error(limit) for `node` where there is too much to count.
    template <class F>
    ItemCosts(const Node& array, std::uint32_t comma, std::uint32_t node, Fuel& work, F&& options) {
        const std::size_t known = array.prefix.size();
        for (std::size_t i = 0; i <= known; ++i) options_.push_back(options(static_cast<std::uint32_t>(i)));
        solve(array, comma, node, work);
    }
    std::uint32_t cost(const Point& at) const {
        auto found = costs_.find(at);
        return found == costs_.end() ? kInfinite : found->second;
    }
    // After one more item; false: there is no room for it.
    static bool advance(const Node& array, Point& at, std::uint32_t marks);

private:
    void solve(const Node& array, std::uint32_t comma, std::uint32_t node, Fuel& work);

    std::vector<std::vector<Option>> options_;
    std::map<Point, std::uint32_t> costs_;
};

}  // namespace guideway
