// Steps of objects, byte by byte (object_steps.h).
#include "guideway/grammar/object_steps.h"

#include <algorithm>

#include "guideway/grammar/bracket_steps.h"
#include "guideway/grammar/machine.h"

namespace guideway {

// Adds the configurations at the beginning of a key. They are cached: white space before a key, and masks there, need them again.
void ObjectSteps::enter_keys(const Config& c, Configs& out) {
    const Config place{c.node, {}, c.regs, c.parent};
    Entered& known = entered_[ConfigHash{}(place) % entered_.size()];
    if (known.place != place) {
        known.place.node = kDone;  // until all of them are known
        known.keys.clear();
        enter_keys_anew(c, known.keys);
        known.place = place;
    }
    out.insert(out.end(), known.keys.begin(), known.keys.end());
}

void ObjectSteps::enter_keys_anew(const Config& c, Configs& out) {
    if (rules_.allows_fixed_key(c.node, c.regs)) out.push_back({c.node, key_state(rules_.keys(c.node)), c.regs, c.parent});
    for (std::uint32_t i = core_.components[c.node].fixed; i < core_.components[c.node].entries.size(); ++i) {
        if (!rules_.allows_entry(c.node, c.regs, i)) continue;
        const AnalysedNode& k = core_.components[c.node];
        if (rules_.has_unknown_key(k, c.regs, i)) out.push_back({c.node, phase_state(Phase::undecided, i), c.regs, c.parent});
        else
            out.push_back(Config::at_leaf(k.open_leaf[i - k.fixed], rules_.open_keys(k, c.regs, i), ReadTexts::kStart,
                                          core_.push({c.node, entry_state(Phase::below_leaf, i), c.regs, c.parent})));
    }
}

void ObjectSteps::enter_value(const Config& c, std::uint32_t label, Configs& out) {
    const AnalysedNode& k = core_.components[c.node];
    const Entry& entry = k.entries[label];
    for (const Reading& r : entry.value) {
        if (core_.components[r.node].cost == kInfinite) continue;
        const auto known = k.bounded ? rules_.can_complete(c.node, c.regs, label, r.marks) : true;
        if (known == false) continue;
        const Register regs = rules_.after_entry(k, c.regs, entry, r.marks);
        if (!known && rules_.entries_cost(c.node, regs) == kInfinite) continue;
        machine_.enter_after(r.node, {c.node, phase_state(Phase::after), regs, c.parent}, out);
    }
}

Config ObjectSteps::after_value(const Config& c, std::uint32_t label) {
    const AnalysedNode& k = core_.components[c.node];
    return {c.node, phase_state(Phase::after), rules_.after_entry(k, c.regs, k.entries[label], 0), c.parent};
}

bool ObjectSteps::is_key_prefix(const Config& c, ExprId state, ExprId next) {
    if (leads_as_far(core_.pool, state, next)) return true;
    const std::uint32_t last = core_.pool.labels.last(next, true);  // usually allowed: texts follow the order of the schema
    if (last == kNoLabel) return false;
    if (rules_.allows_entry(c.node, c.regs, last)) return true;
    const auto& reach = core_.pool.labels.reachable(next);
    const ObjectRules::AllowedKeys allowed_keys(rules_, c.node, c.regs);
    return std::any_of(reach.begin(), reach.end(), [&](const LabelDistance& l) { return l.further && allowed_keys(l.label); });
}

void ObjectSteps::step_key(const Config& c, ExprId state, std::uint8_t byte, Configs& out) {
    const ExprId next = core_.pool.dfa.derivative(state, byte);
    if (next == kNone) return;
    if (is_key_prefix(c, state, next)) out.push_back({c.node, key_state(next), c.regs, c.parent});
    core_.pool.labels.each_accepted(next, [&](std::uint32_t label) {
        if (rules_.allows_entry(c.node, c.regs, label)) out.push_back({c.node, entry_state(Phase::colon, label), c.regs, c.parent});
    });
}

// After a colon: white space, or the value.
void ObjectSteps::begin_value(const Config& c, std::uint32_t label, Configs& out) {
    if (core_.components[c.node].punctuation->space) out.push_back({c.node, phase_state(Phase::value, label), c.regs, c.parent});
    enter_value(c, label, out);
}

void ObjectSteps::step_colon(const Config& c, std::uint8_t byte, Configs& out) {
    const Punctuation& punctuation = *core_.components[c.node].punctuation;
    const std::uint32_t label = label_of_entry(c.state), at = colon_bytes_read(c.state);
    if (at == 0 && punctuation.space && is_space(byte)) out.push_back(c);  // and also try the colon, which can begin with white space
    if (!takes(punctuation.colon, at, byte)) return;
    if (at + 1 == punctuation.colon.size()) begin_value(c, label, out);
    else out.push_back({c.node, entry_state(Phase::colon, label, at + 1), c.regs, c.parent});
}

void ObjectSteps::step(const Config& c, std::uint8_t byte, Configs& out, Configs& todo, Outcome& outcome) {
    const AnalysedNode& k = core_.components[c.node];
    const std::uint32_t rest = rest_of(c.state);
    switch (phase_of(c.state)) {
        case Phase::key: return step_key(c, keys_of(c.state), byte, out);
        case Phase::undecided:
            outcome.context_dependent |= core_.pool.dfa.derivative(rules_.open_keys(k, c.regs, rest), byte) != kNone;
            return;
        case Phase::colon: return step_colon(c, byte, out);
        case Phase::value:
            if (k.punctuation->space && is_space(byte)) begin_value(c, rest, out);
            return;
        case Phase::below_leaf: return machine_.resume(core_.push(c), todo);  // only a frame has this phase
        default:
            return step_brackets(
                machine_, c, byte, out, [&] { enter_keys(c, out); }, [&] { return rules_.allows_any_entry(c.node, c.regs); },
                [&] { return rules_.may_close(k, c.regs); });
    }
}

int ObjectSteps::best_byte(const Config& c, Configs& instead) {
    const AnalysedNode& k = core_.components[c.node];
    auto byte_towards_key = [&](ExprId state) {
        const std::uint32_t label = rules_.best_label(c.node, c.regs, state).label;
        auto distance = [&](ExprId e) {
            const auto& reach = core_.pool.labels.reachable(e);
            auto at =
                std::lower_bound(reach.begin(), reach.end(), label, [](const LabelDistance& x, std::uint32_t l) { return x.label < l; });
            return at != reach.end() && at->label == label ? at->distance : kInfinite;
        };
        if (distance(state) == 0) return -1;  // a complete key: the colon belongs to another configuration
        const std::uint32_t target = distance(state) - 1;
        for (unsigned b = 0; b < 256; ++b) {
            const ExprId next = core_.pool.dfa.derivative(state, static_cast<std::uint8_t>(b));
            if (next == kNone || distance(next) != target) continue;
            rules_.follow_best_label(state, next);
            return static_cast<int>(b);
        }
        return -1;
    };
    switch (phase_of(c.state)) {
        case Phase::key: return byte_towards_key(keys_of(c.state));
        case Phase::colon: return byte_at(k.punctuation->colon, colon_bytes_read(c.state));
        case Phase::value: enter_value(c, rest_of(c.state), instead); return -1;
        default: return best_bracket(*k.punctuation, c.state, [&] { enter_keys(c, instead); }, [&] { return rules_.may_close(k, c.regs); });
    }
}

}  // namespace guideway
