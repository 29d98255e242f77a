#include "guideway/plan.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

#include "guideway/error.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxWork = 20'000'000;  // choices weighed to meet demands
constexpr std::uint64_t kPointWork = 100;
constexpr std::size_t kMaxPoints = 300'000;    // ways an array with counters can stand
constexpr std::size_t kMaxKeys = 128;         // open keys or different items spelled out to know what a minimum costs

std::uint32_t least_cost(const PlanItem& item) {
    std::uint32_t least = kInfinite;
    for (auto [marks, cost] : item.ways) least = std::min(least, cost);
    return least;
}

// Without demands: all required items, and the cheapest others.
std::uint32_t cheapest(const std::vector<PlanItem>& items, std::uint32_t need) {
    std::vector<std::uint32_t> others;
    std::uint32_t total = 0, required = 0;
    for (const PlanItem& item : items) {
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

}  // namespace

const std::vector<std::uint32_t>& KeyLengths::of(const std::vector<ExprId>& classes, std::uint32_t used, std::size_t count) {
    return known(classes, used, count).lengths;
}

// Each text of the set takes one value away at most, so most classes need no search.
bool KeyLengths::has_more(ExprId keys, std::uint32_t used, std::size_t count) {
    if (count == 0 && used == 0) return pool_.alive(keys);
    if (pool_.values_at_least(keys) == kInfinite) return true;
    return has_more(std::vector<ExprId>{keys}, used, count);
}

bool KeyLengths::has_more(const std::vector<ExprId>& classes, std::uint32_t used, std::size_t count) {
    for (const ExprId e : classes)
        if (const std::uint32_t values = pool_.values_at_least(e); values == kInfinite || values > count + texts_.count(used)) return true;
    if (count == 0) return std::any_of(classes.begin(), classes.end(), [&](ExprId e) { return pool_.alive(texts_.without(e, used)); });
    return of(classes, used, count + 1).size() > count;
}

std::uint32_t KeyLengths::texts(const std::vector<ExprId>& classes, std::uint32_t used, std::size_t count) {
    return count > kMaxKeys ? kInfinite : known(classes, used, count).used;
}

const KeyLengths::Known& KeyLengths::known(const std::vector<ExprId>& classes, std::uint32_t used, std::size_t count) {
    if (count > kMaxKeys) throw Error(ErrorKind::limit, "an object or array needs too many different entries");
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
            if (const std::uint32_t bytes = left == kNone ? kInfinite : pool_.shortest(left); bytes < least) {
                least = bytes;
                at = left;
            }
        }
        if (at == kNone) {
            now.ended = true;
            break;
        }
        std::string text;
        pool_.work().spend(least);
        for (int b; (b = pool_.best_byte(at)) >= 0; at = pool_.next(at, static_cast<std::uint8_t>(b))) text.push_back(static_cast<char>(b));
        now.lengths.push_back(least);
        now.used = texts_.plus(now.used, text);
    }
    kept_ += all.size() + now.lengths.size();
    return place->second = std::move(now);
}

std::uint32_t most_needed(std::uint32_t required, std::uint32_t need, std::uint32_t room, std::uint32_t demands) {
    return std::min(room, std::max(need, sum(required, static_cast<std::uint32_t>(std::popcount(demands)))));
}

std::uint32_t plan(const std::vector<PlanItem>& items, std::uint32_t need, std::uint32_t room, std::uint32_t demands, std::uint32_t node, Work& work) {
    std::uint32_t required = 0;
    for (const PlanItem& item : items) required += item.required;
    if (required > room || need > room) return kInfinite;
    if (!demands) return cheapest(items, need);
    std::vector<std::uint32_t> demand;
    for (std::uint32_t left = demands; left; left &= left - 1) demand.push_back(left & (0 - left));
    const std::size_t sets = std::size_t{1} << std::min<std::size_t>(demand.size(), 20);
    const std::uint32_t most = most_needed(required, need, room, demands);
    if (demand.size() > 20 || (items.size() + 1) * sets * (std::size_t{most} + 1) > kMaxWork)
        throw Error(ErrorKind::limit, "too many demands on the entries of one object", node);
    work.spend((items.size() + 1) * sets * (most + 1));
    std::vector<std::uint32_t> best((most + 1) * sets, kInfinite);  // [n][met]: of n of the items looked at so far
    best[0] = 0;
    for (const PlanItem& item : items) {
        auto ways = item.ways;
        for (auto& [marks, cost] : ways) {
            std::uint32_t met = 0;
            for (std::size_t d = 0; d < demand.size(); ++d) met |= marks & demand[d] ? 1u << d : 0;
            marks = met;
        }
        for (std::uint32_t n = most + 1; n-- > 0;)
            for (std::uint32_t met = 0; met < sets; ++met) {
                const std::uint32_t before = best[n * sets + met];
                if (item.required) best[n * sets + met] = kInfinite;
                if (before == kInfinite || n == most) continue;
                for (auto [more, cost] : ways) {
                    std::uint32_t& after = best[(n + 1) * sets + (met | more)];
                    after = std::min(after, sum(before, cost));
                }
            }
    }
    std::uint32_t least = kInfinite;
    for (std::uint32_t n = need; n <= most; ++n) least = std::min(least, best[n * sets + sets - 1]);
    return least;
}

bool ItemPlan::advance(const Node& array, Point& at, std::uint32_t marks) {
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

// All points that can be reached, then the least cost from each to one where the array may end.
void ItemPlan::solve(const Node& array, std::uint32_t comma, std::uint32_t node, Work& work) {
    struct Edge {
        std::uint32_t to, cost;
    };
    std::map<Point, std::uint32_t> numbers;
    std::vector<Point> points;
    std::vector<std::vector<Edge>> back;
    auto number = [&](const Point& p) {
        auto [place, fresh] = numbers.emplace(p, static_cast<std::uint32_t>(points.size()));
        if (fresh) {
            if (points.size() >= kMaxPoints) throw Error(ErrorKind::limit, "an array counts too much at once", node);
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
            if (option.cost != kInfinite && advance(array, after, option.marks)) back[number(after)].push_back({i, sum(option.cost, comma)});
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
