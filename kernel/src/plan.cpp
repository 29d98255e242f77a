#include "guideway/plan.h"

#include <algorithm>
#include <bit>

#include "guideway/error.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxWork = 20'000'000;  // choices weighed to meet demands
constexpr std::size_t kMaxKeys = 4096;        // open keys spelled out to know what a minimum costs

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

const std::vector<std::uint32_t>& KeyLengths::of(ExprId keys, std::uint32_t used, std::size_t count) {
    const ExprId all = texts_.without(keys, used);
    Known known = known_.emplace(all, Known{used, false, {}}).first->second;
    while (known.lengths.size() < count && !known.ended) {
        ExprId at = texts_.without(keys, known.used);
        if (!pool_.alive(at)) {
            known.ended = true;
            break;
        }
        if (known.lengths.size() >= kMaxKeys) throw Error(ErrorKind::limit, "an object needs too many entries without a name");
        std::string text;
        for (int b; (b = pool_.best_byte(at)) >= 0; at = pool_.next(at, static_cast<std::uint8_t>(b))) text.push_back(static_cast<char>(b));
        known.lengths.push_back(static_cast<std::uint32_t>(text.size()));
        known.used = texts_.plus(known.used, text);
    }
    Known& kept = known_.at(all);
    if (kept.lengths.size() != known.lengths.size() || kept.ended != known.ended) kept = std::move(known);
    return kept.lengths;
}

std::uint32_t most_needed(std::uint32_t required, std::uint32_t need, std::uint32_t room, std::uint32_t demands) {
    return std::min(room, std::max(need, sum(required, static_cast<std::uint32_t>(std::popcount(demands)))));
}

std::uint32_t plan(const std::vector<PlanItem>& items, std::uint32_t need, std::uint32_t room, std::uint32_t demands, std::uint32_t node) {
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

}  // namespace guideway
