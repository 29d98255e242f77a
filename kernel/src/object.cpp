// Objects: keyed entries, each property at most once, in the order given or in any order.
// The register of an ordered object is the first property that may still come; of an unordered one, the set of those
// that came (32 bits, or beyond that the number of an interned bitset).
#include <algorithm>

#include "guideway/error.h"
#include "guideway/machine.h"

namespace guideway {

bool Machine::seen(const Component& k, std::uint32_t regs, std::uint32_t label) const {
    if (!k.wide) return regs >> label & 1;
    const auto& set = seen_sets_[regs];
    return !set.empty() && (set[label >> 6] >> (label & 63) & 1);
}

std::uint32_t Machine::with_seen(const Component& k, std::uint32_t regs, std::uint32_t label) {
    if (k.ordered) return std::min(label + 1, k.fixed);
    if (label >= k.fixed) return regs;
    if (!k.wide) return regs | 1u << label;
    auto set = seen_sets_[regs];
    set.resize((k.fixed + 63) / 64);
    set[label >> 6] |= std::uint64_t{1} << (label & 63);
    std::uint64_t h = set.size();
    for (auto word : set) h = mix(h, word);
    auto [first, last] = seen_ids_.equal_range(h);
    for (; first != last; ++first)
        if (seen_sets_[first->second] == set) return first->second;
    if (seen_sets_.size() >= limits_.max_frames) throw Error(ErrorKind::limit, "too many different sets of properties");
    seen_sets_.push_back(std::move(set));
    const auto id = static_cast<std::uint32_t>(seen_sets_.size() - 1);
    seen_ids_.emplace(h, id);
    return id;
}

bool Machine::may_open(const Component& k, std::uint32_t regs, std::uint32_t label) const {
    if (!k.live[label]) return false;
    if (!k.ordered) return label >= k.fixed || !seen(k, regs, label);
    if (label >= k.fixed) return k.next_required[regs] == k.fixed;
    return label >= regs && label <= k.next_required[regs];
}

bool Machine::may_close(const Component& k, std::uint32_t regs) const {
    if (k.ordered) return k.next_required[regs] == k.fixed;
    for (std::uint32_t i = k.next_required[0]; i < k.fixed; i = k.next_required[i + 1])
        if (!seen(k, regs, i)) return false;
    return true;
}

bool Machine::may_continue(const Component& k, std::uint32_t regs) const {
    for (std::uint32_t i = k.fixed; i < k.entries.size(); ++i)
        if (may_open(k, regs, i)) return true;
    if (k.ordered) return k.next_live[regs] < k.fixed && k.next_live[regs] <= k.next_required[regs];
    for (std::uint32_t i = k.next_live[0]; i < k.fixed; i = k.next_live[i + 1])
        if (!seen(k, regs, i)) return true;
    return false;
}

void Machine::enter_value(const Config& c, std::uint32_t label, Configs& out) {
    const Component& k = components_[c.node];
    const std::uint32_t regs = with_seen(k, c.regs, label);
    const std::uint32_t back = push({c.node, phase_state(Phase::after), regs, c.parent});
    for (const Reading& r : k.entries[label].value)
        if (components_[r.node].cost != kInfinite) enter({r.node, 0, 0, back}, out);
}

void Machine::step_key(const Config& c, ExprId state, std::uint8_t byte, Configs& out) {
    const ExprId next = pool_.next(state, byte);
    if (next == kNone) return;
    const Component& k = components_[c.node];
    const auto& reach = pool_.labels(next);
    const bool goes_on = std::any_of(reach.begin(), reach.end(), [&](const LabelDistance& l) { return l.further && may_open(k, c.regs, l.label); });
    if (goes_on) out.push_back({c.node, phase_state(Phase::key, next), c.regs, c.parent});
    pool_.each_accepted_label(next, [&](std::uint32_t label) {
        if (may_open(k, c.regs, label)) out.push_back({c.node, phase_state(Phase::colon, label << 8), c.regs, c.parent});
    });
}

void Machine::step_object(const Config& c, std::uint8_t byte, Configs& out, Configs& todo) {
    const Component& k = components_[c.node];
    const Punctuation& marks = k.punctuation;
    const Phase phase = phase_of(c.state);
    const std::uint32_t rest = rest_of(c.state);
    auto becomes = [&](Phase p, std::uint32_t r) { out.push_back({c.node, phase_state(p, r), c.regs, c.parent}); };
    auto stay_for_space = [&] {  // and go on: a key or value may begin with space of its own
        if (marks.space && is_space(byte)) out.push_back(c);
    };
    auto close_from = [&](std::uint32_t at) {
        if (!takes(marks.close, at, byte)) return;
        if (at + 1 == marks.close.size()) resume(c.parent, out);
        else becomes(Phase::close, at + 1);
    };
    auto comma_from = [&](std::uint32_t at) {
        if (!takes(marks.comma, at, byte)) return;
        if (at + 1 == marks.comma.size()) becomes(Phase::key, k.keys);
        else becomes(Phase::comma, at + 1);
    };
    switch (phase) {
        case Phase::open:
            if (!takes(marks.open, rest, byte)) return;
            if (rest + 1 == marks.open.size()) becomes(Phase::first, 0);
            else becomes(Phase::open, rest + 1);
            return;
        case Phase::first:
            stay_for_space();
            step_key(c, k.keys, byte, out);
            if (may_close(k, c.regs)) close_from(0);
            return;
        case Phase::key:
            if (rest == k.keys) stay_for_space();
            return step_key(c, rest, byte, out);
        case Phase::colon: {
            const std::uint32_t label = rest >> 8, at = rest & 0xff;
            if (at == 0) stay_for_space();
            if (!takes(marks.colon, at, byte)) return;
            if (at + 1 < marks.colon.size()) becomes(Phase::colon, label << 8 | (at + 1));
            else if (marks.space) becomes(Phase::value, label);
            else enter_value(c, label, out);
            return;
        }
        case Phase::value:
            stay_for_space();
            return enter_value(c, rest, todo);
        case Phase::after:
            stay_for_space();
            if (may_continue(k, c.regs)) comma_from(0);
            if (may_close(k, c.regs)) close_from(0);
            return;
        case Phase::comma: return comma_from(rest);
        case Phase::close: return close_from(rest);
    }
}

std::uint32_t Machine::required_cost(const Component& k, std::uint32_t regs) const {
    if (k.ordered) return k.required_cost[regs];
    std::uint32_t total = 0;
    for (std::uint32_t i = k.next_required[0]; i < k.fixed; i = k.next_required[i + 1])
        if (!seen(k, regs, i)) total = sum(total, sum(k.entry_cost[i], length(k.punctuation.comma)));
    return total;
}

// The entry to finish the key with at the least cost, and that cost up to the end of the object.
LabelDistance Machine::best_label(const Component& k, std::uint32_t regs, ExprId state) {
    const std::uint32_t comma = length(k.punctuation.comma), colon = length(k.punctuation.colon);
    const std::uint32_t all = required_cost(k, regs);
    LabelDistance best{0, kInfinite, false};
    for (const LabelDistance& reach : pool_.labels(state)) {
        const std::uint32_t label = reach.label;
        if (!may_open(k, regs, label)) continue;
        std::uint32_t after = all;
        if (k.ordered) after = k.required_cost[std::min(label + 1, k.fixed)];
        else if (k.entries[label].required) after = all - std::min(all, sum(k.entry_cost[label], comma));
        const std::uint32_t total = sum(sum(reach.distance + colon, value_cost(k.entries[label].value)), after);
        if (total < best.distance) best = {label, total, false};
    }
    best.distance = sum(best.distance, length(k.punctuation.close));
    return best;
}

std::uint32_t Machine::object_cost(const Config& c) {
    const Component& k = components_[c.node];
    const std::uint32_t rest = rest_of(c.state);
    const std::uint32_t close = length(k.punctuation.close), comma = length(k.punctuation.comma), colon = length(k.punctuation.colon);
    auto after = [&](std::uint32_t regs) { return sum(required_cost(k, regs), close); };
    auto first = [&] {
        const std::uint32_t needed = required_cost(k, c.regs);
        return sum(needed ? needed - comma : 0, close);
    };
    auto value = [&](std::uint32_t label) { return sum(value_cost(k.entries[label].value), after(with_seen(k, c.regs, label))); };
    switch (phase_of(c.state)) {
        case Phase::open: return sum(first(), length(k.punctuation.open) - rest);
        case Phase::first: return first();
        case Phase::key: return best_label(k, c.regs, rest).distance;
        case Phase::colon: return sum(value(rest >> 8), colon - (rest & 0xff));
        case Phase::value: return value(rest);
        case Phase::after: return after(c.regs);
        case Phase::comma: return sum(best_label(k, c.regs, k.keys).distance, comma - rest);
        case Phase::close: return close - rest;
    }
    return kInfinite;
}

int Machine::object_best_byte(const Config& c, Configs& instead) {
    const Component& k = components_[c.node];
    const std::uint32_t rest = rest_of(c.state);
    auto towards_key = [&](ExprId state) {
        const std::uint32_t label = best_label(k, c.regs, state).label;
        auto distance = [&](ExprId e) {
            const auto& reach = pool_.labels(e);
            auto at = std::lower_bound(reach.begin(), reach.end(), label, [](const LabelDistance& x, std::uint32_t l) { return x.label < l; });
            return at != reach.end() && at->label == label ? at->distance : kInfinite;
        };
        const std::uint32_t target = distance(state) - 1;
        for (unsigned b = 0; b < 256; ++b) {
            const ExprId next = pool_.next(state, static_cast<std::uint8_t>(b));
            if (next != kNone && distance(next) == target) return static_cast<int>(b);
        }
        return -1;
    };
    switch (phase_of(c.state)) {
        case Phase::open: return byte_at(k.punctuation.open, rest);
        case Phase::first: return may_close(k, c.regs) ? byte_at(k.punctuation.close, 0) : towards_key(k.keys);
        case Phase::key: return towards_key(rest);
        case Phase::colon: return byte_at(k.punctuation.colon, rest & 0xff);
        case Phase::value: enter_value(c, rest, instead); return -1;
        case Phase::after: return may_close(k, c.regs) ? byte_at(k.punctuation.close, 0) : byte_at(k.punctuation.comma, 0);
        case Phase::comma: return byte_at(k.punctuation.comma, rest);
        case Phase::close: return byte_at(k.punctuation.close, rest);
    }
    return -1;
}

}  // namespace guideway
