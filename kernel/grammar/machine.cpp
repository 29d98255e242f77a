// Steps of configurations, and shortest completions (machine.h).
#include "guideway/grammar/machine.h"

#include <algorithm>
#include <functional>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/base/sort_unique.h"

namespace guideway {

namespace {

constexpr std::uint64_t kStepWork = 5;  // units of work for a configuration

}  // namespace

Machine::Machine(AnalysedNodes components, NodeId root, ExprPool& pool, MachineTables& tables, MachineLimits limits)
    : core_(std::move(components), pool, tables, limits), root_(root), object_rules_(core_), object_steps_(core_, *this, object_rules_),
      arrays_(core_, *this), gss_(core_, *this, root) {
    for (const NodeId i : core_.components.ids())
        cost_is_upper_bound_ |= (component(i).bounded && !component(i).open_leaf.empty()) || component(i).unique;
}

void Machine::start(Configs& out) {
    if (!gss_.used()) return enter({root_, {}, {}, kBottom}, out);
    gss_.enter(root_, kBottom, out);
}

void Machine::enter(Config start, Configs& out) {
    entering_.assign(1, start);
    // As `resume`, but iterative: a sequence may have any number of empty parts.
    auto end = [&](FrameId frame) {
        const Config& at = core_.frames[frame];
        (core_.is_sequence(at) ? entering_ : out).push_back(at);
    };
    while (!entering_.empty()) {
        const Config at = entering_.back();
        entering_.pop_back();
        core_.pool.fuel().spend(kStepWork);
        const AnalysedNode& c = core_.components[at.node];
        switch (c.kind) {
            case NodeKind::leaf:
                if (c.expr == kEmpty) end(at.parent);
                else if (core_.pool.emptiness.is_nonempty(c.expr))
                    out.push_back(Config::at_leaf(at.node, c.expr, ReadTexts::kUnknown, at.parent));
                break;
            case NodeKind::sequence: {
                const std::uint32_t i = raw(at.state);
                if (i == c.parts.size()) end(at.parent);
                else
                    entering_.push_back(
                        {c.parts[i], {}, {}, i + 1 == c.parts.size() ? at.parent : core_.push({at.node, NodeState{i + 1}, {}, at.parent})});
                break;
            }
            case NodeKind::alternative:
                for (std::size_t i = c.parts.size(); i-- > 0;) entering_.push_back({c.parts[i], {}, {}, at.parent});
                break;
            case NodeKind::number: break;
            case NodeKind::object:
            case NodeKind::array: out.push_back({at.node, phase_state(Phase::open), {}, at.parent}); break;
        }
        core_.check_heads(out.size(), at.node);
    }
}

void Machine::resume(FrameId frame, Configs& out, ReadText read_text) {
    if (gss_.used()) return gss_.resume(frame, read_text, out);
    if (core_.is_sequence(core_.frames[frame])) enter(core_.frames[frame], out);
    else resume_entry(frame, out, read_text);
}

void Machine::resume_entry(FrameId frame, Configs& out, ReadText read_text) {
    const Config at = core_.frames[frame];
    if (at.node != kDone && phase_of(at.state) == Phase::below_leaf) {
        const AnalysedNode& k = core_.components[at.node];
        if (k.kind == NodeKind::array)
            return out.push_back({at.node, phase_state(Phase::after), arrays_.after_unique(k, at.regs, read_text), at.parent});
        const std::uint32_t label = label_of_entry(at.state);
        out.push_back({at.node, entry_state(Phase::colon, label), object_rules_.after_key(k, at.regs, label, read_text), at.parent});
    } else out.push_back(at);
}

void Machine::leaf_becomes(const Config& c, ExprId state, std::string_view read, Configs& out) {
    const ReadText read_text = core_.read_texts.push(c.read_text(), read);
    if (core_.read_texts.size() > core_.limits.max_frames)
        throw over_limit(core_.limits.max_frames, "different texts of keys or items", "use shorter keys or unique items", raw(c.node));
    if (state == kEmpty) resume(c.parent, out, read_text);
    else out.push_back(Config::at_leaf(c.node, state, read_text, c.parent));
}

// The state of a leaf after a text; kNone: there is none; kUnknownExpr: the leaf may end inside the text.
ExprId Machine::leaf_after(const Config& c, std::string_view text) {
    ExprId state = c.expr();
    if (core_.pool[state].op == Op::strings || (core_.pool[state].rowless && ends_in(core_.pool, state, '"')))
        return core_.pool.dfa.derivative_by(state, text);
    const ByteSet& follow = core_.components[c.node].follow;
    for (const char b : text) {
        if (core_.pool[state].nullable && follow.contains(static_cast<std::uint8_t>(b))) return kUnknownExpr;
        if ((state = core_.pool.dfa.derivative(state, static_cast<std::uint8_t>(b))) == kNone) return kNone;
    }
    return state;
}

bool Machine::step_inside(Configs& configs, std::string_view text) {
    Configs& made = inside_;
    made.clear();
    for (const Config& c : configs) {
        const bool leaf = core_.is_leaf(c);
        const bool in_fixed_key =
            !leaf && c.node != kDone && core_.components[c.node].kind == NodeKind::object && phase_of(c.state) == Phase::key;
        if (!leaf && !(in_fixed_key && core_.pool[keys_of(c.state)].op == Op::strings)) return false;
        const ExprId next = leaf ? leaf_after(c, text) : core_.pool.dfa.derivative_by(keys_of(c.state), text);
        if (next == kUnknownExpr || next == kEmpty) return false;
        if (next == kNone) continue;
        if (leaf) leaf_becomes(c, next, text, made);
        else if (core_.pool[next].nullable) return false;
        else if (object_steps_.is_key_prefix(c, keys_of(c.state), next)) made.push_back({c.node, key_state(next), c.regs, c.parent});
    }
    if (made.size() > 1) sort_unique(made);
    configs.swap(made);
    return true;
}

void Machine::step(const Config& config, std::uint8_t byte, Configs& out, Outcome& outcome) {
    if (core_.is_leaf(config)) {  // the common case needs no list
        const ExprId next = core_.pool.dfa.derivative(config.expr(), byte);
        if (!core_.pool[config.expr()].nullable || !core_.components[config.node].follow.contains(byte)) {
            if (next != kNone) leaf_becomes(config, next, {reinterpret_cast<const char*>(&byte), 1}, out);
            return;
        }
    } else if (config.node != kDone && core_.components[config.node].kind == NodeKind::object &&
               phase_of(config.state) != Phase::below_leaf) {
        object_steps_.step(config, byte, out, todo_, outcome);
        core_.check_heads(out.size(), config.node);
        return;
    }
    Configs todo;
    todo.swap(todo_);
    todo.assign(1, config);
    VisitedSet visited;
    while (!todo.empty()) {
        const Config c = todo.back();
        todo.pop_back();
        core_.pool.fuel().spend(kStepWork);
        if (visited.repeats(c)) continue;
        if (c.node == kDone) {
            outcome.popped = true;
            continue;
        }
        switch (core_.components[c.node].kind) {
            case NodeKind::leaf: {
                const ExprId next = core_.pool.dfa.derivative(c.expr(), byte);
                if (next != kNone) leaf_becomes(c, next, {reinterpret_cast<const char*>(&byte), 1}, out);
                if (core_.pool[c.expr()].nullable && core_.components[c.node].follow.contains(byte)) resume(c.parent, todo, c.read_text());
                break;
            }
            case NodeKind::object: object_steps_.step(c, byte, out, todo, outcome); break;
            case NodeKind::array: arrays_.step(c, byte, out, outcome); break;
            case NodeKind::sequence: gss_.enter_rest(c, todo); break;
            default: break;  // alternatives are entered at once and are never the node of a configuration
        }
        core_.check_heads(std::max(todo.size(), out.size()), c.node);
    }
    todo.swap(todo_);
}

bool is_spaced(const AnalysedNode& k, NodeState state) {
    if ((k.kind != NodeKind::object && k.kind != NodeKind::array) || !k.punctuation->space) return false;
    for (const std::string* text : {&k.punctuation->open, &k.punctuation->comma, &k.punctuation->colon, &k.punctuation->close})
        if (is_space(byte_at(*text, 0))) return false;
    const Phase phase = phase_of(state);
    return phase == Phase::first || phase == Phase::gap || phase == Phase::value || phase == Phase::after ||
           (phase == Phase::colon && colon_bytes_read(state) == 0);
}

void Machine::after_space(const Config& c, Configs& out) {
    const AnalysedNode& k = core_.components[c.node];
    if (k.kind == NodeKind::array) {
        if (arrays_.may_have_item(k, c.regs)) arrays_.enter_item(c, out);
    } else if (phase_of(c.state) == Phase::value) object_steps_.enter_value(c, rest_of(c.state), out);
    else object_steps_.enter_keys(c, out);
    core_.pool.fuel().spend(kStepWork * (1 + out.size()));
    core_.check_heads(out.size(), c.node);
}

bool Machine::may_close(const Config& c) {
    const AnalysedNode& k = core_.components[c.node];
    return k.kind == NodeKind::object ? object_rules_.may_close(k, c.regs) : arrays_.may_end(k, c.regs);
}

ByteSet Machine::begins(const Config& c) {
    ByteSet made;
    if (c.node == kDone) return made;
    const AnalysedNode& k = core_.components[c.node];
    if (k.kind == NodeKind::leaf) {
        made = core_.pool.dfa.first(c.expr());
        if (core_.pool[c.expr()].nullable) made |= k.follow;
        return made;
    }
    if (k.kind == NodeKind::sequence) {
        for (std::size_t i = raw(c.state); i < k.parts.size(); ++i) {
            made |= core_.components[k.parts[i]].first;
            if (!core_.components[k.parts[i]].nullable) return made;
        }
        return ByteSet::range(0, 255);
    }
    const Punctuation& punctuation = *k.punctuation;
    const std::uint32_t rest = rest_of(c.state);
    const bool object = k.kind == NodeKind::object;
    if (object || k.kind == NodeKind::array) {
        if (punctuation.space) made = kSpace;
        switch (phase_of(c.state)) {
            case Phase::open: return ByteSet::range(byte_at(punctuation.open, rest), byte_at(punctuation.open, rest));
            case Phase::first: made.insert(byte_at(punctuation.close, 0)); return made;
            case Phase::key: return core_.pool.dfa.first(keys_of(c.state));
            case Phase::colon: made.insert(byte_at(punctuation.colon, colon_bytes_read(c.state))); return made;
            case Phase::gap:
            case Phase::value: return made;
            case Phase::after:
                made.insert(byte_at(punctuation.comma, 0));
                made.insert(byte_at(punctuation.close, 0));
                return made;
            case Phase::comma: return ByteSet::range(byte_at(punctuation.comma, rest), byte_at(punctuation.comma, rest));
            case Phase::close: return ByteSet::range(byte_at(punctuation.close, rest), byte_at(punctuation.close, rest));
            default: break;
        }
    }
    return k.alphabet;
}

// Whether the result of a key or item depends on its text: it may be a text that a shortest completion uses.
bool Machine::is_text_relevant(FrameId frame, ReadText read_text, std::uint32_t further) {
    const Config at = core_.frames[frame];
    if (at.node == kGssNode || at.node == kDone || phase_of(at.state) != Phase::below_leaf) return true;
    auto found = watched_.find(frame);
    if (found == watched_.end()) {
        const bool keys = core_.components[at.node].kind == NodeKind::object;
        const ValueSet watched = keys ? object_rules_.watched_keys(at, further) : arrays_.watched_items(at, further);
        if (watched_.size() >= MachineCore::kMostKept) watched_.clear();
        found = watched_.emplace(frame, watched).first;
    }
    if (found->second == UsedValues::kAllTexts) return true;
    const std::string text = core_.read_texts.text(read_text);
    ExprId state = core_.used_values.expr(found->second);
    for (auto b = text.begin(); state != kNone && b != text.end(); ++b)
        state = core_.pool.dfa.derivative(state, static_cast<std::uint8_t>(*b));
    return state != kNone;
}

// If a text is no prefix of one of the shortest unused texts, these all stay unused. Shortest completions, and their costs, use
// only these.
void Machine::drop_irrelevant_texts(Configs& configs, std::uint32_t further) {
    bool changed = false;
    for (Config& c : configs) {
        if (!core_.is_leaf(c) || c.read_text() <= ReadTexts::kIrrelevant || is_text_relevant(c.parent, c.read_text(), further)) continue;
        c.set_read_text(ReadTexts::kIrrelevant);
        changed = true;
    }
    if (!changed || configs.size() == 1) return;
    sort_unique(configs);
}

Outcome Machine::step_all(const Configs& from, std::uint8_t byte, Configs& out) {
    if (gss_.used()) return gss_.step(from, byte, out);
    out.clear();
    Outcome outcome;
    core_.pool.fuel().spend(kStepWork * from.size());
    for (const Config& c : from) at_node(raw(c.node), [&] { step(c, byte, out, outcome); });
    if (std::ranges::adjacent_find(out, std::greater_equal<>()) != out.end()) sort_unique(out);
    return outcome;
}

bool Machine::accepting(const Config& config) {
    if (gss_.used()) {
        const bool done =
            core_.is_leaf(config) ? core_.pool[config.expr()].nullable : core_.is_sequence(config) && gss_.may_skip_rest(config);
        return config.node == kDone || (done && gss_.may_end_at(config.parent));
    }
    if (config.node == kDone) return true;
    if (!core_.is_leaf(config) || !core_.pool[config.expr()].nullable) return false;  // nearly always
    Configs todo{config};
    VisitedSet visited;
    while (!todo.empty()) {
        const Config c = todo.back();
        todo.pop_back();
        if (visited.repeats(c)) continue;
        if (c.node == kDone) return true;
        if (core_.is_leaf(c) && core_.pool[c.expr()].nullable) resume(c.parent, todo, c.read_text());
    }
    return false;
}

std::uint32_t Machine::local_cost(const Config& c) {
    if (c.node == kDone) return 0;
    const AnalysedNode& k = core_.components[c.node];
    switch (k.kind) {
        case NodeKind::leaf: return core_.pool.emptiness.shortest(c.expr());
        case NodeKind::sequence: return k.tail_cost[raw(c.state)];
        case NodeKind::object: return object_rules_.cost(c);
        case NodeKind::array: return arrays_.cost(c);
        default: return k.cost;
    }
}

std::uint32_t Machine::frame_cost(FrameId id) {
    auto& costs = core_.tables.costs;
    costs.resize(core_.frames.size(), kUnknownCost);
    costs[kBottom] = 0;
    if (costs[id] != kUnknownCost) return costs[id];
    std::vector<FrameId> unknown{id}, below;
    while (!unknown.empty()) {
        const FrameId at = unknown.back();
        const Config frame = core_.frames[at];
        const std::size_t before = unknown.size();
        std::uint32_t least = kInfinite;
        below.clear();
        if (costs[at] == kUnknownCost) core_.members(frame.node == kGssNode ? at : frame.parent, below);
        for (const FrameId one : below) {
            if (costs[one] == kUnknownCost) unknown.push_back(one);
            else least = std::min(least, costs[one]);
        }
        if (unknown.size() > before) continue;
        unknown.pop_back();
        if (costs[at] != kUnknownCost) continue;
        const std::uint32_t cost = frame.node == kGssNode ? least : sum(local_cost(frame), least);
        costs[at] = cost == kUnknownCost ? kInfinite : cost;
    }
    return costs[id];
}

std::uint32_t Machine::cost(const Config& config) {
    if (config.node == kDone) return 0;
    return sum(local_cost(config), frame_cost(config.parent));
}

std::uint32_t Machine::cheapest(const Configs& configs, Configs& out) {
    std::uint32_t least = kInfinite;
    out.clear();
    core_.pool.fuel().spend(kStepWork * configs.size());
    for (const Config& c : configs) {
        const std::uint32_t all = cost(c);
        if (all < least) out.clear();
        if (all <= least) out.push_back(c);
        least = std::min(least, all);
    }
    for (Config& c : out)
        if (core_.is_leaf(c)) c.set_expr(cheapest_alternatives(core_.pool, c.expr()));
    return least;
}

int Machine::best_byte(const Configs& configs) {
    Configs todo;
    const std::uint32_t target = cheapest(configs, todo);
    if (target == 0 || target == kInfinite) return -1;
    int best = -1;
    VisitedSet visited;
    while (!todo.empty()) {
        const Config c = todo.back();
        todo.pop_back();
        core_.pool.fuel().spend(kStepWork);
        if (c.node == kDone || visited.repeats(c) || cost(c) > target) continue;
        int byte = -1;
        const NodeKind kind = core_.components[c.node].kind;
        if (kind == NodeKind::leaf) {
            if (core_.pool.emptiness.shortest(c.expr()) == 0) resume(c.parent, todo, c.read_text());
            else byte = core_.pool.dfa.best_byte(c.expr());
        } else if (kind == NodeKind::sequence) gss_.enter_rest(c, todo);
        else if (kind == NodeKind::object) byte = object_steps_.best_byte(c, todo);
        else if (kind == NodeKind::array) byte = arrays_.best_byte(c, todo);
        if (byte >= 0 && (best < 0 || byte < best)) best = byte;
    }
    return best;
}

}  // namespace guideway
