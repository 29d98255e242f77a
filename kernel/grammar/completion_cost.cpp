#include "guideway/grammar/completion_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxWork = 20'000'000;  // steps of the dynamic programs
constexpr std::uint64_t kPointWork = 100;
constexpr std::size_t kMaxPoints = 300'000;  // states of an array with counters
constexpr std::size_t kMaxKeys = 128;        // maximum number of open keys or different items whose texts are computed
constexpr std::size_t kMaxDemands = 20;

Error too_many_demands(NodeId node) {
    return over_limit(
        kMaxDemands,
        "conditions that some entry of an object must meet, or more than " + std::to_string(kMaxWork) + " combinations of them",
        "use fewer conditions on the entries", raw(node));
}

std::uint32_t least_cost(const CostItem& item) {
    std::uint32_t least = kInfinite;
    for (const auto& [marks, cost] : item.ways) least = std::min(least, cost);
    return least;
}

// Without demands: all required items, and the cheapest others.
std::uint32_t cheapest(const std::vector<CostItem>& items, std::uint32_t need) {
    std::vector<std::uint32_t> others;
    std::uint32_t total = 0, required = 0;
    for (const CostItem& item : items) {
        const std::uint32_t cost = least_cost(item);
        if (item.required) {
            total = sum(total, cost);
            ++required;
        } else if (cost != kInfinite) others.push_back(cost);
    }
    const std::uint32_t more = need - std::min(need, required);
    if (others.size() < more) return kInfinite;
    std::sort(others.begin(), others.end());
    for (std::uint32_t i = 0; i < more; ++i) total = sum(total, others[i]);
    return total;
}

// Selects items so that the number of different marks is within limits, by dynamic programming. Items that share no marks, directly
// or through others, are in different groups. The choices in one group do not depend on those in another: each group is
// summarized by its least cost for each number of marks and of items.
class Groups {
public:
    Groups(const std::vector<CostItem>& items, std::uint32_t need, std::uint32_t room, const MarksNeeded& marks, NodeId node, Fuel& work)
        : needed_(marks), node_(node), fuel_(work), need_(need), room_(room >= items.size() ? kInfinite : room) {
        counts_ = (room_ == kInfinite ? std::size_t{need_} : room_) + 1;
        divide(items);
    }

    std::uint32_t least() {
        const auto most = static_cast<std::size_t>(std::popcount(needed_.demands));
        if ((most + 1) * counts_ > kMaxWork) throw_too_large();
        std::vector<std::uint32_t> total((most + 1) * counts_, kInfinite);  // [marks][items]
        total[0] = 0;
        std::size_t reached = 0;
        for (const Group& group : groups_) {
            const std::size_t marks = static_cast<std::size_t>(std::popcount(group.marks));
            const std::vector<std::uint32_t> own = solve(group);
            spend((reached + 1) * counts_ * own.size());
            std::vector<std::uint32_t> made(total.size(), kInfinite);
            for (std::size_t k = 0; k <= reached; ++k)
                for (std::uint32_t n = 0; n < counts_; ++n) {
                    const std::uint32_t before = total[k * counts_ + n];
                    if (before == kInfinite) continue;
                    for (std::size_t j = 0; j <= marks; ++j)
                        for (std::uint32_t m = 0; m < counts_; ++m) {
                            if (own[j * counts_ + m] == kInfinite) continue;
                            const std::uint32_t count = clipped(n + m);
                            if (count == kInfinite) continue;
                            std::uint32_t& after = made[(k + j) * counts_ + count];
                            after = std::min(after, sum(before, own[j * counts_ + m]));
                        }
                }
            total = std::move(made);
            reached += marks;
        }
        std::uint32_t least = kInfinite;
        for (std::size_t k = needed_.least; k <= std::min<std::size_t>(needed_.most, most); ++k)
            for (std::uint32_t n = need_; n < counts_; ++n) least = std::min(least, total[k * counts_ + n]);
        return least;
    }

private:
    struct Group {
        std::uint64_t marks = 0;
        std::vector<const CostItem*> items;
    };

    [[noreturn]] void throw_too_large() const { throw too_many_demands(node_); }

    void spend(std::size_t work) {
        spent_ += work;
        if (spent_ > kMaxWork) throw_too_large();
        fuel_.spend(work);
    }

    // Without a maximum, all counts above `need_` are equal. kInfinite: above the maximum.
    std::uint32_t clipped(std::uint32_t count) const {
        if (room_ == kInfinite) return std::min(count, need_);
        return count > room_ ? kInfinite : count;
    }

    void divide(const std::vector<CostItem>& items) {
        std::array<std::uint8_t, 64> parents;
        for (std::uint8_t i = 0; i < 64; ++i) parents[i] = i;
        const auto root = [&](int mark) {
            auto at = static_cast<std::uint8_t>(mark);
            while (parents[at] != at) at = parents[at] = parents[parents[at]];
            return at;
        };
        const auto touched = [&](const CostItem& item) {
            std::uint64_t all = item.missing;
            for (const auto& [marks, cost] : item.ways) all |= marks;
            return all & needed_.demands;
        };
        std::vector<std::uint64_t> all;
        all.reserve(items.size());
        for (const CostItem& item : items) {
            const std::uint64_t marks = all.emplace_back(touched(item));
            if (!marks) continue;
            const std::uint8_t first = root(std::countr_zero(marks));
            for (std::uint64_t left = marks & (marks - 1); left; left &= left - 1) parents[root(std::countr_zero(left))] = first;
        }
        std::array<std::uint8_t, 64> numbers{};
        groups_.emplace_back();  // group 0: the items without marks
        for (std::uint64_t left = needed_.demands; left; left &= left - 1) {
            std::uint8_t& number = numbers[root(std::countr_zero(left))];
            if (number == 0) {
                number = static_cast<std::uint8_t>(groups_.size());
                groups_.emplace_back();
            }
            groups_[number].marks |= left & (0 - left);
        }
        for (std::size_t i = 0; i < items.size(); ++i)
            groups_[all[i] ? numbers[root(std::countr_zero(all[i]))] : 0].items.push_back(&items[i]);
    }

    // The least cost by the number of marks that count and the number of items.
    std::vector<std::uint32_t> solve(const Group& group) {
        const auto marks = static_cast<std::size_t>(std::popcount(group.marks));
        const std::size_t sets = std::size_t{1} << std::min<std::size_t>(marks, 20), size = sets * counts_;
        if (marks > kMaxDemands || size > kMaxWork) throw_too_large();
        const auto local = [&](std::uint64_t given) {  // the marks of the group, numbered without gaps
            std::size_t made = 0, bit = 1;
            for (std::uint64_t left = group.marks; left; left &= left - 1, bit <<= 1)
                if (given & left & (0 - left)) made |= bit;
            return made;
        };
        best_.assign(size, kInfinite);  // [items][set]
        best_[local(needed_.met)] = 0;
        std::vector<std::pair<std::size_t, std::uint32_t>> ways;
        for (const CostItem* item : group.items) {
            if (counts_ == 1 && !group.marks && !item->required) continue;  // it would only add to the cost
            ways.clear();
            for (const auto& [marks_of_way, cost] : item->ways) ways.emplace_back(local(marks_of_way), cost);
            const std::size_t missing = local(item->missing);
            spend(size * (ways.size() + 1));
            next_.assign(size, kInfinite);
            for (std::uint32_t n = 0; n < counts_; ++n)
                for (std::size_t set = 0; set < sets; ++set) {
                    const std::uint32_t before = best_[n * sets + set];
                    if (before == kInfinite) continue;
                    if (!item->required) {
                        std::uint32_t& left = next_[n * sets + (set | missing)];
                        left = std::min(left, before);
                    }
                    const std::uint32_t count = clipped(n + 1);
                    if (count == kInfinite) continue;
                    for (const auto& [more, cost] : ways) {
                        std::uint32_t& after = next_[count * sets + (set | more)];
                        after = std::min(after, sum(before, cost));
                    }
                }
            best_.swap(next_);
        }
        std::vector<std::uint32_t> made((marks + 1) * counts_, kInfinite);
        for (std::uint32_t n = 0; n < counts_; ++n)
            for (std::size_t set = 0; set < sets; ++set) {
                std::uint32_t& least = made[static_cast<std::size_t>(std::popcount(set)) * counts_ + n];
                least = std::min(least, best_[n * sets + set]);
            }
        return made;
    }

    const MarksNeeded& needed_;
    NodeId node_;
    Fuel& fuel_;
    std::uint32_t need_, room_;
    std::size_t counts_ = 1;  // the number of different counts of items
    std::size_t spent_ = 0;
    std::vector<Group> groups_;
    std::vector<std::uint32_t> best_, next_;
};

}  // namespace

// Each text of the set excludes at most one value, so most classes need no search.
bool KeyLengths::has_more(ExprId keys, ValueSet used, std::size_t count) {
    if (count == 0 && used == UsedValues::kEmptySet) return pool_.emptiness.is_nonempty(keys);
    if (pool_.emptiness.values_at_least(keys) == kInfinite) return true;
    return has_more(std::vector<ExprId>{keys}, used, count);
}

bool KeyLengths::has_more(const std::vector<ExprId>& classes, ValueSet used, std::size_t count) {
    for (const ExprId e : classes)
        if (const std::uint32_t values = pool_.emptiness.values_at_least(e); values == kInfinite || values > count + texts_.count(used))
            return true;
    if (count == 0)
        return std::any_of(classes.begin(), classes.end(), [&](ExprId e) { return pool_.emptiness.is_nonempty(texts_.without(e, used)); });
    return of(classes, used, count + 1).size() > count;
}

ValueSet KeyLengths::texts(const std::vector<ExprId>& classes, ValueSet used, std::size_t count) {
    return count > kMaxKeys ? UsedValues::kAllTexts : known(classes, used, count).used;
}

const KeyLengths::Known& KeyLengths::known(const std::vector<ExprId>& classes, ValueSet used, std::size_t count) {
    if (count > kMaxKeys)
        throw over_limit(kMaxKeys, "different entries that an object or array needs", "use a smaller minProperties or minItems");
    std::vector<ExprId> all;
    for (ExprId e : classes) all.push_back(texts_.without(e, used));
    if (kept_ > kMostKept) {
        known_.clear();
        kept_ = 0;
    }
    const auto place = known_.emplace(all, Known{used, false, {}}).first;
    if (place->second.lengths.size() >= count || place->second.ended) return place->second;
    Known now = place->second;
    while (now.lengths.size() < count && !now.ended) {
        ExprId at = kNone;
        std::uint32_t least = kInfinite;
        for (ExprId e : classes) {
            const ExprId left = texts_.without(e, now.used);
            if (const std::uint32_t bytes = left == kNone ? kInfinite : pool_.emptiness.shortest(left); bytes < least) {
                least = bytes;
                at = left;
            }
        }
        if (at == kNone) {
            now.ended = true;
            break;
        }
        std::string text;
        pool_.fuel().spend(least);
        for (int b; (b = pool_.dfa.best_byte(at)) >= 0; at = pool_.dfa.derivative(at, static_cast<std::uint8_t>(b)))
            text.push_back(static_cast<char>(b));
        now.lengths.push_back(least);
        now.used = texts_.plus(now.used, text);
    }
    kept_ += all.size() + now.lengths.size();
    return place->second = std::move(now);
}

std::uint32_t most_needed(std::uint32_t required, std::uint32_t need, std::uint32_t room, std::uint64_t demands) {
    return std::min(room, std::max(need, sum(required, static_cast<std::uint32_t>(std::popcount(demands)))));
}

std::uint32_t plan(const std::vector<CostItem>& items, std::uint32_t need, std::uint32_t room, const MarksNeeded& marks_needed, NodeId node,
                   Fuel& work) {
    std::uint32_t required = 0;
    bool missing = false;
    for (const CostItem& item : items) {
        required += item.required;
        missing |= item.missing != 0;
    }
    if (required > room || need > room) return kInfinite;
    if (need > items.size()) return kInfinite;
    if (marks_needed.least > marks_needed.most) return kInfinite;
    if (missing || marks_needed.least != static_cast<std::uint32_t>(std::popcount(marks_needed.demands)))
        return Groups(items, need, room, marks_needed, node, work).least();
    const std::uint64_t unmet = marks_needed.demands & ~marks_needed.met;
    if (!unmet) return cheapest(items, need);
    const auto count = static_cast<std::uint32_t>(std::popcount(unmet));
    if (room != kInfinite) room = most_needed(required, need, room, unmet);  // a cheapest choice has at most one item for each
    return Groups(items, need, room, {unmet, count, count, 0}, node, work).least();
}

bool ItemCosts::advance(const Node& array, Point& at, std::uint32_t marks) {
    if (at[0] >= array.maximum) return false;
    ++at[0];
    if (array.maximum == kInfinite) at[0] = std::min(at[0], std::max(array.minimum, static_cast<std::uint32_t>(array.prefix.size())));
    for (std::size_t j = 0; j < array.counts.size(); ++j) {
        if (!(marks >> j & 1)) continue;
        const Count& count = array.counts[j];
        if (at[1 + j] >= count.maximum) return false;
        ++at[1 + j];
        if (count.maximum == kInfinite) at[1 + j] = std::min(at[1 + j], count.minimum);
    }
    return true;
}

// Finds all reachable points, then the least cost from each to a point where the array may end (Dijkstra, backwards).
void ItemCosts::solve(const Node& array, std::uint32_t comma, NodeId node, Fuel& work) {
    struct Edge {
        std::uint32_t to, cost;
    };
    std::map<Point, std::uint32_t> numbers;
    std::vector<Point> points;
    std::vector<std::vector<Edge>> back;
    auto number = [&](const Point& p) {
        auto [place, fresh] = numbers.emplace(p, static_cast<std::uint32_t>(points.size()));
        if (fresh) {
            if (points.size() >= kMaxPoints)
                throw over_limit(kMaxPoints, "combinations of counts in one array", "use smaller limits of contains, minItems and maxItems",
                                 raw(node));
            points.push_back(p);
            back.emplace_back();
        }
        return place->second;
    };
    number(Point(1 + array.counts.size(), 0));
    for (std::uint32_t i = 0; i < points.size(); ++i) {
        work.spend(kPointWork);
        for (const Option& option : options_[std::min<std::size_t>(points[i][0], options_.size() - 1)]) {
            Point after = points[i];
            if (option.cost != kInfinite && advance(array, after, option.marks))
                back[number(after)].push_back({i, sum(option.cost, comma)});
        }
    }
    std::vector<std::uint32_t> costs(points.size(), kInfinite);
    using Task = std::pair<std::uint32_t, std::uint32_t>;  // cost, point
    std::priority_queue<Task, std::vector<Task>, std::greater<>> tasks;
    for (std::uint32_t i = 0; i < points.size(); ++i) {
        bool ends = points[i][0] >= array.minimum;
        for (std::size_t j = 0; j < array.counts.size(); ++j) ends &= points[i][1 + j] >= array.counts[j].minimum;
        if (ends) tasks.emplace(costs[i] = 0, i);
    }
    while (!tasks.empty()) {
        const auto [cost, at] = tasks.top();
        tasks.pop();
        if (cost > costs[at]) continue;
        for (const Edge& edge : back[at])
            if (const std::uint32_t total = sum(cost, edge.cost); total < costs[edge.to]) tasks.emplace(costs[edge.to] = total, edge.to);
    }
    for (std::uint32_t i = 0; i < points.size(); ++i)
        if (costs[i] != kInfinite) costs_.emplace(std::move(points[i]), costs[i]);
}

}  // namespace guideway
