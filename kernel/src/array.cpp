// Arrays: a prefix of items with grammars of their own, then the rest. The register counts items, and stops counting
// where more of them change nothing.
#include <algorithm>

#include "guideway/machine.h"

namespace guideway {

namespace {

// The grammar of the item that comes after `count` others.
const Value& item_after(const Component& k, std::uint32_t count) { return count < k.prefix.size() ? k.prefix[count] : k.rest; }

// The register once that item has come.
std::uint32_t one_more(const Component& k, std::uint32_t count) {
    if (k.maximum != kInfinite) return count + 1;
    return std::min(count + 1, std::max(k.minimum, static_cast<std::uint32_t>(k.prefix.size())));
}

}  // namespace

bool Machine::may_have_item(const Component& k, std::uint32_t count) const {
    return k.maximum == kInfinite || count < k.maximum;
}

void Machine::enter_item(const Config& c, Configs& out) {
    const Component& k = components_[c.node];
    const std::uint32_t back = push({c.node, phase_state(Phase::after), one_more(k, c.regs), c.parent});
    for (const Reading& r : item_after(k, c.regs))
        if (components_[r.node].cost != kInfinite) enter({r.node, 0, 0, back}, out);
}

void Machine::step_array(const Config& c, std::uint8_t byte, Configs& out) {
    const Component& k = components_[c.node];
    const Punctuation& marks = k.punctuation;
    const Phase phase = phase_of(c.state);
    const std::uint32_t rest = rest_of(c.state);
    auto becomes = [&](Phase p, std::uint32_t r) { out.push_back({c.node, phase_state(p, r), c.regs, c.parent}); };
    auto close_from = [&](std::uint32_t at) {
        if (!takes(marks.close, at, byte)) return;
        if (at + 1 == marks.close.size()) resume(c.parent, out);
        else becomes(Phase::close, at + 1);
    };
    auto item_or = [&](Phase p) {  // where an item begins; stands there as long as space comes
        becomes(p, 0);
        if (may_have_item(k, c.regs)) enter_item(c, out);
    };
    auto comma_from = [&](std::uint32_t at) {
        if (!takes(marks.comma, at, byte)) return;
        if (at + 1 < marks.comma.size()) becomes(Phase::comma, at + 1);
        else if (marks.space) item_or(Phase::gap);
        else enter_item(c, out);
    };
    const bool spaced = marks.space && is_space(byte);
    switch (phase) {
        case Phase::open:
            if (!takes(marks.open, rest, byte)) return;
            if (rest + 1 == marks.open.size()) item_or(Phase::first);
            else becomes(Phase::open, rest + 1);
            return;
        case Phase::first:
            if (spaced) item_or(Phase::first);
            if (k.minimum == 0) close_from(0);
            return;
        case Phase::gap:
            if (spaced) item_or(Phase::gap);
            return;
        case Phase::after:
            if (spaced) out.push_back(c);
            if (may_have_item(k, c.regs)) comma_from(0);
            if (c.regs >= k.minimum) close_from(0);
            return;
        case Phase::comma: return comma_from(rest);
        case Phase::close: return close_from(rest);
        default: return;
    }
}

// Items that are still needed after `count`, with their commas.
std::uint32_t Machine::items_cost(const Component& k, std::uint32_t count, bool first) const {
    if (count >= k.minimum) return 0;
    const auto known = static_cast<std::uint32_t>(k.prefix.size());
    const std::uint32_t from = std::min(count, known), to = std::min(k.minimum, known);
    std::uint64_t total = from < to ? std::uint64_t{k.tail_cost[to]} - k.tail_cost[from] : 0;
    const std::uint32_t more = k.minimum - std::max(count, to);
    if (more) total += std::uint64_t{more} * value_cost(k.rest);
    total += std::uint64_t{k.minimum - count - (first ? 1 : 0)} * k.punctuation.comma.size();
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(total, kInfinite - 1));
}

std::uint32_t Machine::array_cost(const Config& c) {
    const Component& k = components_[c.node];
    const std::uint32_t rest = rest_of(c.state);
    const std::uint32_t close = length(k.punctuation.close);
    auto next_item = [&] {  // an item now, whether it is needed or not
        return sum(sum(value_cost(item_after(k, c.regs)), items_cost(k, one_more(k, c.regs), false)), close);
    };
    switch (phase_of(c.state)) {
        case Phase::open: return sum(sum(items_cost(k, 0, true), close), length(k.punctuation.open) - rest);
        case Phase::first: return sum(items_cost(k, 0, true), close);
        case Phase::gap: return next_item();
        case Phase::after: return sum(items_cost(k, c.regs, false), close);
        case Phase::comma: return sum(next_item(), length(k.punctuation.comma) - rest);
        case Phase::close: return close - rest;
        default: return kInfinite;
    }
}

int Machine::array_best_byte(const Config& c, Configs& instead) {
    const Component& k = components_[c.node];
    const std::uint32_t rest = rest_of(c.state);
    switch (phase_of(c.state)) {
        case Phase::open: return byte_at(k.punctuation.open, rest);
        case Phase::first:
            if (k.minimum == 0) return byte_at(k.punctuation.close, 0);
            enter_item(c, instead);
            return -1;
        case Phase::gap: enter_item(c, instead); return -1;
        case Phase::after: return byte_at(c.regs >= k.minimum ? k.punctuation.close : k.punctuation.comma, 0);
        case Phase::comma: return byte_at(k.punctuation.comma, rest);
        case Phase::close: return byte_at(k.punctuation.close, rest);
        default: return -1;
    }
}

}  // namespace guideway
