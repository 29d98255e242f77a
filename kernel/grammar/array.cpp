// Arrays: a prefix of items with separate grammars, then the rest.
//
// The register is the number of items, up to the number from which on further items change nothing. With counters or unique items
// it is the number of a record: the number of items, then either the number of items for each counter, or the number of items of
// unknown text (in walks for masks, and in registers that are made only to compute a cost; not in those of a matcher) and the
// set of the known texts. Items of a unique array are leaves without the texts of earlier items.
#include "guideway/grammar/array.h"

#include <algorithm>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/grammar/bracket_steps.h"
#include "guideway/grammar/machine.h"

namespace guideway {

namespace {

enum Word : std::size_t { kItems, kUnknownItems, kUsed };

// The readings of the item after `count` items.
const Readings& item_after(const AnalysedNode& k, std::uint32_t count) { return count < k.prefix.size() ? k.prefix[count] : k.rest; }

std::uint32_t one_more(const AnalysedNode& k, std::uint32_t count) {
    if (k.maximum != kInfinite) return count + 1;
    return std::min(count + 1, std::max(k.minimum, static_cast<std::uint32_t>(k.prefix.size())));
}

}  // namespace

std::uint32_t Arrays::items_so_far(const AnalysedNode& k, Register regs) {
    return k.direct ? raw(regs) : core_.records.at(regs, k.record_words)[kItems];
}

// The register after an item with these `marks`; kNoCounters: the item is not allowed.
Register Arrays::after_item(const AnalysedNode& k, Register regs, std::uint64_t marks) {
    if (k.direct) return Register{one_more(k, raw(regs))};
    auto& record = core_.records.draft(regs, k.record_words);
    if (!ItemCosts::advance(k, record, static_cast<std::uint32_t>(marks)) || k.item_plan->cost(record) == kInfinite) return kNoCounters;
    return core_.records.intern(record);
}

Register Arrays::after_unique(const AnalysedNode& k, Register regs, ReadText read_text) {
    auto& record = core_.records.draft(regs, k.record_words);
    record[kItems] = one_more(k, record[kItems]);
    if (read_text == ReadTexts::kUnknown) ++record[kUnknownItems];
    else if (read_text != ReadTexts::kIrrelevant) record[kUsed] = raw(core_.used_with(ValueSet{record[kUsed]}, read_text));
    if (core_.records.size() >= core_.limits.max_frames)
        throw over_limit(core_.limits.max_frames, "different sets of array items", "use a smaller array");
    return core_.records.intern(record);
}

const std::vector<NodeId>& Arrays::leaves_at(const AnalysedNode& k, Register regs) {
    return k.item_leaves[std::min<std::size_t>(items_so_far(k, regs), k.prefix.size())];
}

// The expressions of the leaves of the next item.
std::vector<ExprId> Arrays::classes_at(const AnalysedNode& k, Register regs) {
    std::vector<ExprId> made;
    for (NodeId leaf : leaves_at(k, regs)) made.push_back(core_.components[leaf].expr);
    return made;
}

ExprId Arrays::unused(const AnalysedNode& k, Register regs, NodeId leaf) {
    return core_.used_values.without(core_.components[leaf].expr, ValueSet{core_.records.at(regs, k.record_words)[kUsed]});
}

bool Arrays::may_have_item(const AnalysedNode& k, Register regs) {
    const std::uint32_t count = items_so_far(k, regs);
    if (k.maximum != kInfinite && count >= k.maximum) return false;
    if (k.direct) return true;
    if (!k.unique) {
        const Readings& value = item_after(k, count);
        return std::any_of(value.begin(), value.end(), [&](const Reading& r) {
            return core_.components[r.node].cost != kInfinite && after_item(k, regs, r.marks) != kNoCounters;
        });
    }
    const std::uint32_t* const record = core_.records.at(regs, k.record_words);
    const ValueSet used{record[kUsed]};
    const std::uint32_t unknown_items = record[kUnknownItems];
    return core_.key_lengths.has_more(classes_at(k, regs), used, unknown_items);
}

bool Arrays::may_end(const AnalysedNode& k, Register regs) {
    if (items_so_far(k, regs) < k.minimum) return false;
    return k.counts.empty() || k.item_plan->cost(core_.records.copy(regs, k.record_words)) == 0;
}

void Arrays::enter_item(const Config& c, Configs& out) {
    const AnalysedNode& k = core_.components[c.node];
    if (k.unique) {
        if (core_.records.at(c.regs, k.record_words)[kUnknownItems])
            return out.push_back({c.node, phase_state(Phase::undecided), c.regs, c.parent});
        for (NodeId leaf : leaves_at(k, c.regs))
            if (const ExprId left = unused(k, c.regs, leaf); core_.pool.emptiness.is_nonempty(left))
                out.push_back(
                    Config::at_leaf(leaf, left, ReadTexts::kStart, core_.push({c.node, phase_state(Phase::below_leaf), c.regs, c.parent})));
        return;
    }
    for (const Reading& r : item_after(k, items_so_far(k, c.regs))) {
        const Register regs = core_.components[r.node].cost == kInfinite ? kNoCounters : after_item(k, c.regs, r.marks);
        if (regs != kNoCounters) machine_.enter_after(r.node, {c.node, phase_state(Phase::after), regs, c.parent}, out);
    }
}

void Arrays::step(const Config& c, std::uint8_t byte, Configs& out, Outcome& outcome) {
    const AnalysedNode& k = core_.components[c.node];
    if (phase_of(c.state) == Phase::undecided) {
        for (const NodeId leaf : leaves_at(k, c.regs))
            outcome.context_dependent |= core_.pool.dfa.derivative(unused(k, c.regs, leaf), byte) != kNone;
        return;
    }
    const auto may_continue = [&] {
        // An item of unknown text may belong to the prefix: whether another distinct item exists is not known here.
        const bool unknown = k.unique && !k.prefix.empty() && core_.records.at(c.regs, k.record_words)[kUnknownItems];
        outcome.context_dependent |= unknown;
        return !unknown && may_have_item(k, c.regs);
    };
    const auto enter = [&] {
        if (may_have_item(k, c.regs)) enter_item(c, out);
    };
    step_brackets(machine_, c, byte, out, enter, may_continue, [&] { return may_end(k, c.regs); });
}

// As `ObjectRules::watched_keys`; an item with its comma has at least two bytes.
ValueSet Arrays::watched_items(const Config& frame, std::uint32_t further) {
    const AnalysedNode& k = core_.components[frame.node];
    const auto record = core_.records.copy(frame.regs, k.record_words);
    if (record[kUnknownItems]) return UsedValues::kAllTexts;
    const std::size_t count = k.minimum - std::min(k.minimum, record[kItems]) + std::size_t{2} + further / 2;
    return core_.key_lengths.texts(classes_at(k, frame.regs), ValueSet{record[kUsed]}, count);
}

// The cost of the items that are still needed, each with a comma.
std::uint32_t Arrays::items_cost(const AnalysedNode& k, Register regs) {
    if (!k.counts.empty()) return k.item_plan->cost(core_.records.copy(regs, k.record_words));
    const std::uint32_t count = items_so_far(k, regs), comma = length(k.punctuation->comma);
    if (count >= k.minimum) return 0;
    if (k.unique) {
        const auto record = core_.records.copy(regs, k.record_words);
        const std::size_t wanted = k.minimum - count + record[kUnknownItems];  // items of unknown text may be the shortest
        const auto lengths = core_.key_lengths.of(classes_at(k, regs), ValueSet{record[kUsed]}, wanted);
        if (lengths.size() < wanted) return kInfinite;
        std::uint32_t total = 0;
        for (std::size_t i = record[kUnknownItems]; i < wanted; ++i) total = sum(total, sum(lengths[i], comma));
        return total;
    }
    const auto known = static_cast<std::uint32_t>(k.prefix.size());
    const std::uint32_t from = std::min(count, known), to = std::min(k.minimum, known);
    std::uint64_t total = from < to ? std::uint64_t{k.tail_cost[to]} - k.tail_cost[from] : 0;
    const std::uint32_t more = k.minimum - std::max(count, to);
    if (more) total += std::uint64_t{more} * core_.value_cost(k.rest);
    total += std::uint64_t{k.minimum - count} * comma;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(total, kInfinite - 1));
}

// The cost of one more item, and of all items that are needed after it.
std::uint32_t Arrays::item_and_rest(const AnalysedNode& k, Register regs) {
    std::uint32_t least = kInfinite;
    if (k.unique) {
        const auto record = core_.records.copy(regs, k.record_words);
        if (const std::uint32_t unknown_items = record[kUnknownItems]) {  // items of unknown text may be the shortest
            const auto lengths = core_.key_lengths.of(classes_at(k, regs), ValueSet{record[kUsed]}, unknown_items + 1);
            if (lengths.size() > unknown_items) least = lengths[unknown_items];
        } else {
            for (NodeId leaf : leaves_at(k, regs))
                if (const ExprId left = unused(k, regs, leaf); core_.pool.emptiness.is_nonempty(left))
                    least = std::min(least, core_.pool.emptiness.shortest(left));
        }
        return sum(least, items_cost(k, after_unique(k, regs, ReadTexts::kUnknown)));
    }
    for (const Reading& r : item_after(k, items_so_far(k, regs))) {
        const std::uint32_t cost = core_.components[r.node].cost;
        const Register after = cost == kInfinite ? kNoCounters : after_item(k, regs, r.marks);
        if (after != kNoCounters) least = std::min(least, sum(cost, items_cost(k, after)));
    }
    return least;
}

std::uint32_t Arrays::cost(const Config& c) {
    const AnalysedNode& k = core_.components[c.node];
    const std::uint32_t rest = rest_of(c.state);
    const std::uint32_t close = length(k.punctuation->close), comma = length(k.punctuation->comma);
    auto first = [&] {
        const std::uint32_t needed = items_cost(k, c.regs);
        return sum(needed ? needed - comma : 0, close);
    };
    switch (phase_of(c.state)) {
        case Phase::open: return sum(first(), length(k.punctuation->open) - rest);
        case Phase::first: return first();
        case Phase::gap: return sum(item_and_rest(k, c.regs), close);
        case Phase::below_leaf: return sum(items_cost(k, after_unique(k, c.regs, ReadTexts::kUnknown)), close);
        case Phase::after: return sum(items_cost(k, c.regs), close);
        case Phase::comma: return sum(sum(item_and_rest(k, c.regs), close), comma - rest);
        case Phase::close: return close - rest;
        default: return kInfinite;
    }
}

int Arrays::best_byte(const Config& c, Configs& instead) {
    const AnalysedNode& k = core_.components[c.node];
    return best_bracket(*k.punctuation, c.state, [&] { enter_item(c, instead); }, [&] { return may_end(k, c.regs); });
}

}  // namespace guideway
