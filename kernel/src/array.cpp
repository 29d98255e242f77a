// Arrays: a prefix of items with grammars of their own, then the rest. The register counts items, and stops counting
// where more of them change nothing.
#include <algorithm>

#include "guideway/machine.h"

namespace guideway {

bool Machine::may_have_item(const Component& k, std::uint32_t count) const {
    return k.maximum == kInfinite || count < k.maximum;
}

void Machine::enter_item(const Config& c, Configs& out) {
    const Component& k = components_[c.node];
    const auto known = static_cast<std::uint32_t>(k.parts.size());
    const std::uint32_t item = c.regs < known ? k.parts[c.regs] : k.rest;
    std::uint32_t count = c.regs + 1;
    if (k.maximum == kInfinite) count = std::min(count, std::max(k.minimum, known));
    enter(item, push({c.node, phase_state(Phase::after), count, c.parent}), out);
}

void Machine::step_array(const Config& c, std::uint8_t byte, Configs& out, Configs& todo) {
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
    auto comma_from = [&](std::uint32_t at) {
        if (!takes(marks.comma, at, byte)) return;
        if (at + 1 < marks.comma.size()) becomes(Phase::comma, at + 1);
        else if (marks.space) becomes(Phase::value, 0);
        else enter_item(c, out);
    };
    const bool between = phase == Phase::first || phase == Phase::value || phase == Phase::after;
    if (between && marks.space && is_space(byte)) out.push_back(c);  // and go on: an item may begin with space of its own
    switch (phase) {
        case Phase::open:
            if (!takes(marks.open, rest, byte)) return;
            if (rest + 1 == marks.open.size()) becomes(Phase::first, 0);
            else becomes(Phase::open, rest + 1);
            return;
        case Phase::first:
            if (may_have_item(k, 0)) enter_item(c, todo);
            if (k.minimum == 0) close_from(0);
            return;
        case Phase::value: return enter_item(c, todo);
        case Phase::after:
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
    const auto known = static_cast<std::uint32_t>(k.parts.size());
    const std::uint32_t from = std::min(count, known), to = std::min(k.minimum, known);
    std::uint64_t total = from < to ? std::uint64_t{k.tail_cost[to]} - k.tail_cost[from] : 0;
    const std::uint32_t more = k.minimum - std::max(count, to);
    if (more) total += std::uint64_t{more} * components_[k.rest].cost;
    total += std::uint64_t{k.minimum - count - (first ? 1 : 0)} * k.punctuation.comma.size();
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(total, kInfinite - 1));
}

std::uint32_t Machine::array_cost(const Config& c) {
    const Component& k = components_[c.node];
    const std::uint32_t rest = rest_of(c.state);
    const auto close = static_cast<std::uint32_t>(k.punctuation.close.size());
    auto next_item = [&] {  // an item now, whether it is needed or not
        const std::uint32_t item = c.regs < k.parts.size() ? k.parts[c.regs] : k.rest;
        std::uint32_t count = c.regs + 1;
        if (k.maximum == kInfinite) count = std::min(count, std::max(k.minimum, static_cast<std::uint32_t>(k.parts.size())));
        return sum(sum(components_[item].cost, items_cost(k, count, false)), close);
    };
    switch (phase_of(c.state)) {
        case Phase::open: return sum(sum(items_cost(k, 0, true), close), static_cast<std::uint32_t>(k.punctuation.open.size()) - rest);
        case Phase::first: return sum(items_cost(k, 0, true), close);
        case Phase::value: return next_item();
        case Phase::after: return sum(items_cost(k, c.regs, false), close);
        case Phase::comma: return sum(next_item(), static_cast<std::uint32_t>(k.punctuation.comma.size()) - rest);
        case Phase::close: return close - rest;
        default: return kInfinite;
    }
}

int Machine::array_best_byte(const Config& c, Configs& instead) {
    const Component& k = components_[c.node];
    const std::uint32_t rest = rest_of(c.state);
    const auto byte = [](const std::string& text, std::uint32_t at) { return static_cast<int>(static_cast<std::uint8_t>(text[at])); };
    switch (phase_of(c.state)) {
        case Phase::open: return byte(k.punctuation.open, rest);
        case Phase::first:
            if (k.minimum == 0) return byte(k.punctuation.close, 0);
            enter_item(c, instead);
            return -1;
        case Phase::value: enter_item(c, instead); return -1;
        case Phase::after: return byte(c.regs >= k.minimum ? k.punctuation.close : k.punctuation.comma, 0);
        case Phase::comma: return byte(k.punctuation.comma, rest);
        case Phase::close: return byte(k.punctuation.close, rest);
        default: return -1;
    }
}

}  // namespace guideway
