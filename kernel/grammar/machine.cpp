#include "guideway/grammar/machine.h"

#include <algorithm>
#include <functional>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"

namespace guideway {

namespace {

constexpr std::uint64_t kStepWork = 5;  // of a configuration

}  // namespace

const AnalysedNode* SharedLeaves::keep(AnalysedNode&& leaf) {
    const std::uint64_t hash = mix(std::uint64_t{leaf.id} << 32 | leaf.expr, leaf.cost);
    const std::uint32_t known = ids_.find(hash, [&](std::uint32_t id) {
        const AnalysedNode& c = kept_[id];
        return c.id == leaf.id && c.expr == leaf.expr && c.cost == leaf.cost && c.nullable == leaf.nullable && c.first == leaf.first &&
               c.follow == leaf.follow;
    });
    if (known != InternTable::kMissing) return &kept_[known];
    ids_.add(hash, static_cast<std::uint32_t>(kept_.size()));
    return &kept_.emplace_back(std::move(leaf));
}

AnalysedNodes::AnalysedNodes(std::vector<AnalysedNode>&& all, SharedLeaves* leaves) : at_(all.size()) {
    const auto shared = [&](const AnalysedNode& c) { return leaves && c.kind == NodeKind::leaf; };
    own_.reserve(all.size() - static_cast<std::size_t>(std::count_if(all.begin(), all.end(), shared)));
    for (std::size_t i = 0; i < all.size(); ++i)
        at_[i] = shared(all[i]) ? leaves->keep(std::move(all[i])) : &own_.emplace_back(std::move(all[i]));
}

Machine::Machine(AnalysedNodes components, std::uint32_t root, ExprPool& pool, MachineTables& tables, MachineLimits limits)
    : components_(std::move(components)), root_(root), pool_(pool), limits_(limits), keys_(components_.size(), kUnknownExpr),
      tables_(tables), records_(tables.records), read_texts_(tables.read_texts), texts_(pool), key_lengths_(pool, texts_) {
    frames_.push_back({kDone, 0, 0, 0});
    for (std::uint32_t i = 0; i < size(); ++i)
        recalls_ |= (components_[i].bounded && !components_[i].open_leaf.empty()) || components_[i].unique;
    prepare_forks();
}

void Machine::start(Configs& out) {
    if (!uses_gss_) return enter({root_, 0, 0, kBottom}, out);
    wait(root_, kBottom, -1);
    gss_close(-1, out);
}

std::uint32_t Machine::push(const Config& frame) {
    const std::uint64_t hash = ConfigHash{}(frame);
    const auto hash_of = [&](std::uint32_t id) { return ConfigHash{}(frames_[id]); };
    const std::uint32_t known = tables_.frames.find(hash, frames_.size(), hash_of, [&](std::uint32_t id) { return frames_[id] == frame; });
    if (known != InternTable::kMissing) return known;
    if (frames_.size() >= limits_.max_frames)
        throw over_limit(limits_.max_frames, "different parser stacks", "use a less nested constraint", frame.node);
    const auto id = static_cast<std::uint32_t>(frames_.size());
    frames_.push_back(frame);
    tables_.frames.add(hash);
    return id;
}

void Machine::enter(Config start, Configs& out) {
    entering_.assign(1, start);
    // As `resume`, but a list and no recursion: a sequence may have any number of empty parts.
    auto end = [&](std::uint32_t frame) {
        const Config& at = frames_[frame];
        (is_sequence(at) ? entering_ : out).push_back(at);
    };
    while (!entering_.empty()) {
        const Config at = entering_.back();
        entering_.pop_back();
        pool_.fuel().spend(kStepWork);
        const AnalysedNode& c = components_[at.node];
        switch (c.kind) {
            case NodeKind::leaf:
                if (c.expr == kEmpty) end(at.parent);
                else if (pool_.emptiness.is_nonempty(c.expr)) out.push_back({at.node, c.expr, 0, at.parent});
                break;
            case NodeKind::sequence: {
                const std::uint32_t i = at.state;
                if (i == c.parts.size()) end(at.parent);
                else entering_.push_back({c.parts[i], 0, 0, i + 1 == c.parts.size() ? at.parent : push({at.node, i + 1, 0, at.parent})});
                break;
            }
            case NodeKind::alternative:
                for (std::size_t i = c.parts.size(); i-- > 0;) entering_.push_back({c.parts[i], 0, 0, at.parent});
                break;
            case NodeKind::number: break;
            case NodeKind::object:
            case NodeKind::array: out.push_back({at.node, phase_state(Phase::open), 0, at.parent}); break;
        }
        if (out.size() > limits_.max_heads)
            throw over_limit(limits_.max_heads, "parser configurations are open at once",
                             "use fewer alternatives that begin with the same text", at.node);
    }
}

void Machine::resume(std::uint32_t frame, Configs& out, std::uint32_t read_text) {
    if (uses_gss_) {
        end(frame, read_text, out);
        return gss_close(-1, out);
    }
    if (is_sequence(frames_[frame])) enter(frames_[frame], out);
    else resume_entry(frame, out, read_text);
}

// The same for what is no sequence.
void Machine::resume_entry(std::uint32_t frame, Configs& out, std::uint32_t read_text) {
    const Config at = frames_[frame];
    if (at.node != kDone && phase_of(at.state) == Phase::named) {
        const AnalysedNode& k = components_[at.node];
        if (k.kind == NodeKind::array)
            return out.push_back({at.node, phase_state(Phase::after), after_unique(k, at.regs, read_text), at.parent});
        const std::uint32_t label = rest_of(at.state) >> 8;
        out.push_back({at.node, phase_state(Phase::colon, label << 8), after_key(k, at.regs, label, read_text), at.parent});
    } else out.push_back(at);
}

void Machine::leaf_becomes(const Config& c, ExprId state, std::string_view read, Configs& out) {
    const std::uint32_t read_text = read_texts_.push(c.regs, read);
    if (read_texts_.size() > limits_.max_frames)
        throw over_limit(limits_.max_frames, "different texts of keys or items", "use shorter keys or unique items", c.node);
    if (state == kEmpty) resume(c.parent, out, read_text);
    else out.push_back({c.node, state, read_text, c.parent});
}

// kUnknownExpr: it may end inside the text.
ExprId Machine::leaf_after(const Config& c, std::string_view text) {
    ExprId state = c.state;
    if (pool_[state].op == Op::strings || (pool_[state].rowless && ends_in(pool_, state, '"'))) return pool_.dfa.derivative_by(state, text);
    const ByteSet& follow = components_[c.node].follow;
    for (const char b : text) {
        if (pool_[state].nullable && follow.contains(static_cast<std::uint8_t>(b))) return kUnknownExpr;
        if ((state = pool_.dfa.derivative(state, static_cast<std::uint8_t>(b))) == kNone) return kNone;
    }
    return state;
}

bool Machine::step_inside(Configs& configs, std::string_view text) {
    Configs& made = inside_;
    made.clear();
    for (const Config& c : configs) {
        const bool leaf = is_leaf(c);
        const bool name = !leaf && c.node != kDone && components_[c.node].kind == NodeKind::object && phase_of(c.state) == Phase::key;
        if (!leaf && !(name && pool_[rest_of(c.state)].op == Op::strings)) return false;
        const ExprId next = leaf ? leaf_after(c, text) : pool_.dfa.derivative_by(rest_of(c.state), text);
        if (next == kUnknownExpr || next == kEmpty) return false;
        if (next == kNone) continue;
        if (leaf) leaf_becomes(c, next, text, made);
        else if (pool_[next].nullable) return false;
        else if (name_goes_on(c, rest_of(c.state), next)) made.push_back({c.node, phase_state(Phase::key, next), c.regs, c.parent});
    }
    if (made.size() > 1) {
        std::sort(made.begin(), made.end());
        made.erase(std::unique(made.begin(), made.end()), made.end());
    }
    configs.swap(made);
    return true;
}

void Machine::step(const Config& config, std::uint8_t byte, Configs& out, Outcome& outcome) {
    if (is_leaf(config)) {  // the common case needs no list
        const ExprId next = pool_.dfa.derivative(config.state, byte);
        if (!pool_[config.state].nullable || !components_[config.node].follow.contains(byte)) {
            if (next != kNone) leaf_becomes(config, next, {reinterpret_cast<const char*>(&byte), 1}, out);
            return;
        }
    } else if (config.node != kDone && components_[config.node].kind == NodeKind::object && phase_of(config.state) != Phase::named) {
        step_object(config, byte, out, todo_, outcome);
        if (out.size() > limits_.max_heads)
            throw over_limit(limits_.max_heads, "parser configurations are open at once",
                             "use fewer alternatives that begin with the same text", config.node);
        return;
    }
    Configs todo;
    todo.swap(todo_);
    todo.assign(1, config);
    VisitedSet visited;
    while (!todo.empty()) {
        const Config c = todo.back();
        todo.pop_back();
        pool_.fuel().spend(kStepWork);
        if (visited.before(c)) continue;
        if (c.node == kDone) {
            outcome.popped = true;
            continue;
        }
        switch (components_[c.node].kind) {
            case NodeKind::leaf: {
                const ExprId next = pool_.dfa.derivative(c.state, byte);
                if (next != kNone) leaf_becomes(c, next, {reinterpret_cast<const char*>(&byte), 1}, out);
                if (pool_[c.state].nullable && components_[c.node].follow.contains(byte)) resume(c.parent, todo, c.regs);
                break;
            }
            case NodeKind::object: step_object(c, byte, out, todo, outcome); break;
            case NodeKind::array: step_array(c, byte, out, outcome); break;
            case NodeKind::sequence: enter_rest(c, todo); break;
            default: break;  // alternatives are entered at once and are never a state
        }
        if (todo.size() > limits_.max_heads || out.size() > limits_.max_heads)
            throw over_limit(limits_.max_heads, "parser configurations are open at once",
                             "use fewer alternatives that begin with the same text", c.node);
    }
    todo.swap(todo_);
}

bool Machine::is_spaced(const Config& c) const {
    if (c.node == kDone) return false;
    const AnalysedNode& k = components_[c.node];
    if ((k.kind != NodeKind::object && k.kind != NodeKind::array) || !k.punctuation->space) return false;
    for (const std::string* text : {&k.punctuation->open, &k.punctuation->comma, &k.punctuation->colon, &k.punctuation->close})
        if (is_space(byte_at(*text, 0))) return false;
    const Phase phase = phase_of(c.state);
    return phase == Phase::first || phase == Phase::gap || phase == Phase::value || phase == Phase::after ||
           (phase == Phase::colon && !(rest_of(c.state) & 0xff));
}

void Machine::after_space(const Config& c, Configs& out) {
    const AnalysedNode& k = components_[c.node];
    if (k.kind == NodeKind::array) {
        if (may_have_item(k, c.regs)) enter_item(c, out);
    } else if (phase_of(c.state) == Phase::value) enter_value(c, rest_of(c.state), out);
    else enter_keys(c, out);
    pool_.fuel().spend(kStepWork * (1 + out.size()));
    if (out.size() > limits_.max_heads)
        throw over_limit(limits_.max_heads, "parser configurations are open at once",
                         "use fewer alternatives that begin with the same text", c.node);
}

bool Machine::may_close(const Config& c) {
    const AnalysedNode& k = components_[c.node];
    return k.kind == NodeKind::object ? may_close(k, c.regs) : may_end(k, c.regs);
}

ByteSet Machine::begins(const Config& c) {
    ByteSet made;
    if (c.node == kDone) return made;
    const AnalysedNode& k = components_[c.node];
    if (k.kind == NodeKind::leaf) {
        made = pool_.dfa.first(c.state);
        if (pool_[c.state].nullable) made |= k.follow;
        return made;
    }
    if (k.kind == NodeKind::sequence) {
        for (std::size_t i = c.state; i < k.parts.size(); ++i) {
            made |= components_[k.parts[i]].first;
            if (!components_[k.parts[i]].nullable) return made;
        }
        return ByteSet::range(0, 255);
    }
    const Punctuation& marks = *k.punctuation;
    const std::uint32_t rest = rest_of(c.state);
    const bool object = k.kind == NodeKind::object;
    if (object || k.kind == NodeKind::array) {
        if (marks.space)
            for (char b : {' ', '\t', '\n', '\r'}) made.insert(static_cast<std::uint8_t>(b));
        switch (phase_of(c.state)) {
            case Phase::open: return ByteSet::range(byte_at(marks.open, rest), byte_at(marks.open, rest));
            case Phase::first: made.insert(byte_at(marks.close, 0)); return made;
            case Phase::key: return pool_.dfa.first(rest);
            case Phase::colon: made.insert(byte_at(marks.colon, rest & 0xff)); return made;
            case Phase::gap:
            case Phase::value: return made;
            case Phase::after:
                made.insert(byte_at(marks.comma, 0));
                made.insert(byte_at(marks.close, 0));
                return made;
            case Phase::comma: return ByteSet::range(byte_at(marks.comma, rest), byte_at(marks.comma, rest));
            case Phase::close: return ByteSet::range(byte_at(marks.close, rest), byte_at(marks.close, rest));
            default: break;
        }
    }
    return k.alphabet;
}

bool Machine::matters(std::uint32_t frame, std::uint32_t read_text, std::uint32_t further) {
    const Config at = frames_[frame];
    if (at.node == kGssNode || at.node == kDone || phase_of(at.state) != Phase::named) return true;
    auto found = watched_.find(frame);
    if (found == watched_.end()) {
        const bool keys = components_[at.node].kind == NodeKind::object;
        const std::uint32_t watched = keys ? watched_keys(at, further) : watched_items(at, further);
        if (watched_.size() >= kMostKept) watched_.clear();
        found = watched_.emplace(frame, watched).first;
    }
    if (found->second == kAllTexts) return true;
    const std::string text = read_texts_.text(read_text);
    ExprId state = texts_.expr(found->second);
    for (auto b = text.begin(); state != kNone && b != text.end(); ++b) state = pool_.dfa.derivative(state, static_cast<std::uint8_t>(*b));
    return state != kNone;
}

// A text that begins like none of the shortest ones still free leaves all of these free, as before: completions write
// these alone, and what they cost is counted by these alone.
void Machine::settle(Configs& configs, std::uint32_t further) {
    bool changed = false;
    for (Config& c : configs) {
        if (c.regs <= ReadTexts::kOther || !is_leaf(c) || matters(c.parent, c.regs, further)) continue;
        c.regs = ReadTexts::kOther;
        changed = true;
    }
    if (!changed || configs.size() == 1) return;
    std::sort(configs.begin(), configs.end());
    configs.erase(std::unique(configs.begin(), configs.end()), configs.end());
}

Outcome Machine::step_all(const Configs& from, std::uint8_t byte, Configs& out) {
    if (uses_gss_) return gss_step(from, byte, out);
    out.clear();
    Outcome outcome;
    pool_.fuel().spend(kStepWork * from.size());
    for (const Config& c : from) at_node(c.node, [&] { step(c, byte, out, outcome); });
    if (std::adjacent_find(out.begin(), out.end(), std::greater_equal<>()) != out.end()) {
        std::sort(out.begin(), out.end());
        out.erase(std::unique(out.begin(), out.end()), out.end());
    }
    return outcome;
}

bool Machine::accepting(const Config& config) {
    if (uses_gss_) {
        const bool done = is_leaf(config) ? pool_[config.state].nullable : is_sequence(config) && may_skip_rest(config);
        return config.node == kDone || (done && may_end_at(config.parent));
    }
    if (config.node == kDone) return true;
    if (!is_leaf(config) || !pool_[config.state].nullable) return false;  // nearly always
    Configs todo{config};
    VisitedSet visited;
    while (!todo.empty()) {
        const Config c = todo.back();
        todo.pop_back();
        if (visited.before(c)) continue;
        if (c.node == kDone) return true;
        if (is_leaf(c) && pool_[c.state].nullable) resume(c.parent, todo, c.regs);
    }
    return false;
}

std::uint32_t Machine::value_cost(const Readings& value) const {
    std::uint32_t least = kInfinite;
    for (const Reading& r : value) least = std::min(least, components_[r.node].cost);
    return least;
}

std::uint32_t Machine::local_cost(const Config& c) {
    if (c.node == kDone) return 0;
    const AnalysedNode& k = components_[c.node];
    switch (k.kind) {
        case NodeKind::leaf: return pool_.emptiness.shortest(c.state);
        case NodeKind::sequence: return k.tail_cost[c.state];
        case NodeKind::object: return object_cost(c);
        case NodeKind::array: return array_cost(c);
        default: return k.cost;
    }
}

std::uint32_t Machine::frame_cost(std::uint32_t id) {
    auto& costs = tables_.costs;
    costs.resize(frames_.size(), kUnknownCost);
    costs[kBottom] = 0;
    if (costs[id] != kUnknownCost) return costs[id];
    std::vector<std::uint32_t> unknown{id}, below;
    while (!unknown.empty()) {
        const std::uint32_t at = unknown.back();
        const Config frame = frames_[at];
        const std::size_t before = unknown.size();
        std::uint32_t least = kInfinite;
        below.clear();
        if (costs[at] == kUnknownCost) members(frame.node == kGssNode ? at : frame.parent, below);
        for (std::uint32_t one : below) {
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
    pool_.fuel().spend(kStepWork * configs.size());
    for (const Config& c : configs) {
        const std::uint32_t all = cost(c);
        if (all < least) out.clear();
        if (all <= least) out.push_back(c);
        least = std::min(least, all);
    }
    for (Config& c : out)
        if (is_leaf(c)) c.state = cheapest_alternatives(pool_, c.state);
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
        pool_.fuel().spend(kStepWork);
        if (c.node == kDone || visited.before(c) || cost(c) > target) continue;
        int byte = -1;
        const NodeKind kind = components_[c.node].kind;
        if (kind == NodeKind::leaf) {
            if (pool_.emptiness.shortest(c.state) == 0) resume(c.parent, todo, c.regs);
            else byte = pool_.dfa.best_byte(c.state);
        } else if (kind == NodeKind::sequence) enter_rest(c, todo);
        else if (kind == NodeKind::object) byte = object_best_byte(c, todo);
        else if (kind == NodeKind::array) byte = array_best_byte(c, todo);
        if (byte >= 0 && (best < 0 || byte < best)) best = byte;
    }
    return best;
}

}  // namespace guideway
