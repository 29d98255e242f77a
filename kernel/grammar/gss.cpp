// The graph-structured stack (gss.h). It is used for recursive grammars, except if the recursion is only through objects or
// arrays of which at most one can be read at a time. In such grammars many paths lead to one node. If several callers reach
// a node at the same byte, it is entered once, above one frame that represents the set of their frames. So the stacks form a
// graph (Tomita, "Efficient parsing for natural language", 1986). Its nodes are interned by their contents, without positions
// in the text: the same nesting later in the text has the same numbers.
//
// Grammars without recursion use it too if nested alternatives could lead to more configurations than a share of the limit.
//
// After the end of a leaf, the rest of the sequence around it is a configuration, which is entered with the next byte.
//
// Callers are entered before the nodes that they call (`topological_rank_`), so that all callers of a node are known when it is
// entered. If parts can be empty, a caller may be found later. The node is then entered twice, and the configurations are joined.
#include "guideway/grammar/gss.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/base/sort_unique.h"
#include "guideway/grammar/machine.h"

namespace guideway {

namespace {

constexpr std::uint64_t kTurnWork = 10;  // units of work for a node or configuration
constexpr std::size_t kMostOfHeads = 4;  // stacks are shared if there may be more than max_heads / kMostOfHeads configurations
constexpr unsigned kMaxFactored =
    64;  // limits on depth and total number of recursive calls of `unite`; frames above them are not merged, which is correct too

// Whether several objects, or several arrays, that contain themselves can be read at the same time. Each level of nesting would
// multiply their number.
class Overlaps {
public:
    explicit Overlaps(const AnalysedNodes& nodes) : nodes_(nodes) {}

    bool within_themselves() {
        std::vector<NodeId> wide;
        for (const NodeId i : nodes_.ids())
            if (nodes_[i].kind == NodeKind::alternative && nodes_[i].parts.size() > 1 && is_wide(i)) wide.push_back(i);
        for (const NodeId i : wide)
            if (reaches_itself(i)) return true;
        return false;
    }

private:
    // Whether a value can be one of two objects, or one of two arrays.
    bool is_wide(NodeId start) {
        std::size_t objects = 0, arrays = 0;
        begin();
        for (todo_.assign(1, start); !todo_.empty();) {
            const AnalysedNode& c = nodes_[take()];
            objects += c.kind == NodeKind::object;
            arrays += c.kind == NodeKind::array;
            if (objects > 1 || arrays > 1) return true;
            if (c.kind == NodeKind::alternative)
                for (NodeId part : c.parts) add(part);
        }
        return false;
    }

    bool reaches_itself(NodeId start) {
        begin();
        for (todo_.assign(1, start); !todo_.empty();) {
            bool found = false;
            each_child(nodes_[take()], [&](NodeId child) {
                found |= child == start;
                add(child);
            });
            if (found) return true;
        }
        return false;
    }

    void begin() { seen_.assign(nodes_.size(), 0); }
    NodeId take() {
        const NodeId node = todo_.back();
        todo_.pop_back();
        return node;
    }
    void add(NodeId node) {
        if (!std::exchange(seen_[node], 1)) todo_.push_back(node);
    }

    const AnalysedNodes& nodes_;
    IdVector<NodeId, std::uint8_t> seen_;
    std::vector<NodeId> todo_;
};

// The number of objects, or arrays, of a grammar that can be read at the same time in one text: alternatives add up, nestings
// multiply. An upper bound, except that a cycle of references counts once.
class Widths {
public:
    explicit Widths(const AnalysedNodes& nodes) : nodes_(nodes), widths_(nodes.size()), seen_(nodes.size()) {}

    std::uint32_t of(NodeId root) {
        std::vector<NodeId> todo{root};
        while (!todo.empty()) {
            const NodeId node = todo.back();
            if (seen_[node] == kUnseen) {
                seen_[node] = kEntered;
                each_child(nodes_[node], [&](NodeId child) {
                    if (seen_[child] == kUnseen) todo.push_back(child);
                });
                continue;
            }
            todo.pop_back();
            if (seen_[node] == kEntered) widths_[node] = found(nodes_[node]);
            seen_[node] = kFinished;
        }
        return widths_[root].most();
    }

private:
    enum Seen : std::uint8_t { kUnseen, kEntered, kFinished };
    struct Width {
        std::uint32_t objects = 0, arrays = 0;
        std::uint32_t most() const { return std::max(objects, arrays); }
    };

    std::uint32_t of_value(const Readings& value) const {
        Width made;
        for (const Reading& r : value) add(made, widths_[r.node]);
        return made.most();
    }
    static void add(Width& to, const Width& more) {
        to.objects = sum(to.objects, more.objects);
        to.arrays = sum(to.arrays, more.arrays);
    }

    Width found(const AnalysedNode& c) const {
        Width made;
        std::uint32_t inside = 1;
        for (const Entry& e : c.entries) inside = std::max(inside, of_value(e.value));
        for (const Readings& v : c.prefix) inside = std::max(inside, of_value(v));
        inside = std::max(inside, of_value(c.rest));
        if (c.kind == NodeKind::object) made.objects = inside;
        else if (c.kind == NodeKind::array) made.arrays = inside;
        for (NodeId part : c.parts) {
            const Width& one = widths_[part];
            if (c.kind == NodeKind::alternative) add(made, one);
            else made = {std::max(made.objects, one.objects), std::max(made.arrays, one.arrays)};
        }
        return made;
    }

    const AnalysedNodes& nodes_;
    IdVector<NodeId, Width> widths_;
    IdVector<NodeId, Seen> seen_;
};

}  // namespace

Gss::Gss(MachineCore& core, Machine& machine, NodeId root) : core_(core), machine_(machine) {
    used_ = visit_parts(core_.components, false, [](NodeId) {}) || Overlaps(core_.components).within_themselves() ||
            Widths(core_.components).of(root) > core_.limits.max_heads / kMostOfHeads;
    if (!used_) return;
    visit_parts(core_.components, true, [&](NodeId node) { ranked_.push_back(node); });
    std::ranges::reverse(ranked_);
    topological_rank_.resize(core_.components.size());
    for (std::uint32_t i = 0; i < ranked_.size(); ++i) topological_rank_[ranked_[i]] = i;
    scheduled_.resize(core_.components.size());
}

Register Gss::record_of(const std::vector<FrameId>& frames) {
    std::vector<std::uint32_t> words;
    for (const FrameId frame : frames) words.push_back(raw(frame));
    return core_.records.intern(words);
}

// The frame that unites all of these. Frames that differ only in their predecessors are merged above the united
// predecessors, recursively: stacks such as rrrP, rrP, rP of an ambiguous grammar stay linear instead of quadratic.
FrameId Gss::unite(const std::vector<FrameId>& frames, unsigned depth) {
    if (frames.size() == 1) return frames[0];
    std::vector<FrameId> all;
    for (FrameId frame : frames) core_.members(frame, all);
    core_.pool.fuel().spend(4 * all.size());
    sort_unique(all);
    if (all.size() == 1) return all[0];
    if (all.size() > core_.limits.max_parents)
        throw over_limit(core_.limits.max_parents, "different parser stacks at the same time", "make the grammar less ambiguous");
    const Register record = record_of(all);
    if (const auto known = gss_node_ids_.find(record); known != gss_node_ids_.end()) return known->second;
    if (depth == 0) factored_ = 0;
    if (depth < kMaxFactored && ++factored_ < kMaxFactored) {
        std::sort(all.begin(), all.end(), [&](FrameId a, FrameId b) { return core_.frames[a] < core_.frames[b]; });
        std::vector<FrameId> made, below;
        for (std::size_t i = 0; i < all.size();) {
            Config at = core_.frames[all[i]];
            const std::size_t first = i;
            below.clear();
            for (; i < all.size() && core_.frames[all[i]].node == at.node && core_.frames[all[i]].state == at.state &&
                   core_.frames[all[i]].regs == at.regs;
                 ++i)
                below.push_back(core_.frames[all[i]].parent);
            if (i == first + 1) made.push_back(all[first]);
            else {
                at.parent = unite(below, depth + 1);
                made.push_back(core_.push(at));
            }
        }
        sort_unique(made);
        all.swap(made);
    }
    const auto count = static_cast<std::uint32_t>(all.size());
    const FrameId id = count == 1 ? all[0] : core_.push({kGssNode, NodeState{count}, record_of(all), kBottom});
    gss_node_ids_.emplace(record, id);
    return id;
}

void Gss::enter(NodeId node, FrameId frame, Configs& out) {
    schedule(node, frame, -1);
    enter_scheduled(-1, out);
}

void Gss::resume(FrameId frame, ReadText read_text, Configs& out) {
    continue_at(frame, read_text, out);
    enter_scheduled(-1, out);
}

// Adds the configurations that continue at a frame: rests of sequences to `sequences_`, others, which need not be entered, to `out`.
void Gss::continue_at(FrameId frame, ReadText read_text, Configs& out) {
    const auto one = [&](FrameId id) {
        const Config& at = core_.frames[id];
        if (core_.is_sequence(at)) sequences_.push_back(at);
        else machine_.resume_entry(id, out, read_text);
    };
    try {
        if (core_.frames[frame].node != kGssNode) return one(frame);
        std::vector<FrameId> all;
        core_.members(frame, all);
        core_.pool.fuel().spend(4 * all.size());
        for (const FrameId id : all) one(id);
    } catch (...) {  // the next call must begin without pending work
        sequences_.clear();
        throw;
    }
}

// Adds a node to the worklist, to be entered above a frame, if it can begin with the byte (-1: any).
void Gss::schedule(NodeId node, FrameId frame, int byte) {
    const AnalysedNode& c = core_.components[node];
    if (byte >= 0 && !c.nullable && !c.first.contains(static_cast<std::uint8_t>(byte))) return;
    auto& frames = scheduled_[topological_rank_[node]];
    if (frames.empty()) {
        worklist_.push_back(topological_rank_[node]);
        std::push_heap(worklist_.begin(), worklist_.end(), std::greater<>());
    }
    frames.push_back(frame);
}

void Gss::schedule_part(NodeId node, std::uint32_t part, FrameId frame, int byte) {
    const AnalysedNode& c = core_.components[node];
    schedule(c.parts[part], part + 1 == c.parts.size() ? frame : core_.push({node, NodeState{part + 1}, {}, frame}), byte);
}

// Sequences that continue with the same part continue above one frame.
void Gss::schedule_sequences(int byte) {
    if (sequences_.size() == 1) {
        const Config at = sequences_[0];
        sequences_.clear();
        return schedule_part(at.node, raw(at.state), at.parent, byte);
    }
    Configs ended;
    ended.swap(sequences_);
    sort_unique(ended);
    std::vector<FrameId> frames;
    for (std::size_t i = 0; i < ended.size();) {
        const Config at = ended[i];
        frames.clear();
        for (; i < ended.size() && ended[i].node == at.node && ended[i].state == at.state; ++i) frames.push_back(ended[i].parent);
        schedule_part(at.node, raw(at.state), unite(frames), byte);
    }
}

// Enters all scheduled nodes, in topological order.
void Gss::enter_scheduled(int byte, Configs& out) {
    try {
        schedule_sequences(byte);
        std::vector<FrameId>& frames = scratch_.frames;
        while (!worklist_.empty()) {
            core_.pool.fuel().spend(kTurnWork);
            std::pop_heap(worklist_.begin(), worklist_.end(), std::greater<>());
            const std::uint32_t rank = worklist_.back();
            const NodeId node = ranked_[rank];
            worklist_.pop_back();
            frames.clear();
            frames.swap(scheduled_[rank]);
            const FrameId frame = unite(frames);
            const AnalysedNode& c = core_.components[node];
            switch (c.kind) {
                case NodeKind::leaf:
                    if (c.expr == kEmpty) continue_at(frame, ReadTexts::kUnknown, out);
                    else if (core_.pool.emptiness.is_nonempty(c.expr))
                        out.push_back(Config::at_leaf(node, c.expr, ReadTexts::kUnknown, frame));
                    break;
                case NodeKind::sequence:
                    if (c.parts.empty()) continue_at(frame, ReadTexts::kUnknown, out);
                    else schedule_part(node, 0, frame, byte);
                    break;
                case NodeKind::alternative:
                    for (const NodeId part : c.parts) schedule(part, frame, byte);
                    break;
                case NodeKind::number: break;
                case NodeKind::object:
                case NodeKind::array: out.push_back({node, phase_state(Phase::open), {}, frame}); break;
            }
            if (!sequences_.empty()) schedule_sequences(byte);
            core_.check_heads(out.size(), node);
        }
    } catch (...) {  // the next call must begin without pending work
        sequences_.clear();
        for (std::uint32_t rank : worklist_) scheduled_[rank].clear();
        worklist_.clear();
        throw;
    }
}

// Configurations that differ only in their frames become one.
void Gss::join(Configs& configs) {
    if (configs.size() < 2) return;
    std::sort(configs.begin(), configs.end());
    std::vector<FrameId> frames;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < configs.size(); ++kept) {
        Config at = configs[i];
        frames.clear();
        for (; i < configs.size() && configs[i].node == at.node && configs[i].state == at.state && configs[i].regs == at.regs; ++i)
            if (frames.empty() || frames.back() != configs[i].parent) frames.push_back(configs[i].parent);
        if (at.node != kDone) at.parent = unite(frames);
        configs[kept] = at;
    }
    configs.resize(kept);
}

void Gss::resume_all(const std::vector<FrameId>& frames, Configs& out) {
    for (FrameId frame : frames) continue_at(frame, ReadTexts::kUnknown, out);
    enter_scheduled(-1, out);
    join(out);
}

Outcome Gss::step(const Configs& from, std::uint8_t byte, Configs& out) {
    out.clear();
    Outcome outcome;
    auto &before = scratch_.before, &after = scratch_.after;  // clang before 16 captures no structured bindings
    Configs &waiting = scratch_.waiting, &entered = scratch_.entered;
    before.clear();
    after.clear();
    waiting.clear();
    deferred_.clear();
    struct Deferring {  // a value that several objects or arrays enter by this byte is entered once, above all their frames
        bool& flag;
        explicit Deferring(bool& one) : flag(one) { flag = true; }
        ~Deferring() { flag = false; }
    };
    std::optional<Deferring> deferring(defers_);
    auto take = [&](const Config& c) {
        if (!core_.is_leaf(c)) return machine_.step(c, byte, out, outcome);
        const ExprId next = core_.pool.dfa.derivative(c.expr(), byte);
        if (next == kNone) return;
        const ReadText read_text = core_.read_texts.push(c.read_text(), {reinterpret_cast<const char*>(&byte), 1});
        if (next == kEmpty) after.emplace_back(c.parent, read_text);
        else out.push_back(Config::at_leaf(c.node, next, read_text, c.parent));
    };
    core_.pool.fuel().spend(kTurnWork * from.size());
    for (const Config& c : from) {
        if (core_.is_sequence(c)) {
            waiting.push_back(c);
            continue;
        }
        take(c);
        if (core_.is_leaf(c) && core_.pool[c.expr()].nullable && core_.components[c.node].follow.contains(byte))
            before.emplace_back(c.parent, c.read_text());
    }
    if (!before.empty() || !waiting.empty()) {
        entered.clear();
        for (auto [frame, read_text] : before) continue_at(frame, read_text, entered);
        sequences_.insert(sequences_.end(), waiting.begin(), waiting.end());
        enter_scheduled(byte, entered);
        join(entered);
        for (const Config& c : entered) {
            if (core_.is_leaf(c) && !core_.pool[c.expr()].nullable) take(c);
            else machine_.step(c, byte, out, outcome);
        }
    }
    if (!after.empty()) {  // rests of sequences are entered with the next byte
        for (auto [frame, read_text] : after) continue_at(frame, read_text, out);
        out.insert(out.end(), sequences_.begin(), sequences_.end());
        sequences_.clear();
    }
    deferring.reset();
    if (!deferred_.empty()) {
        for (const auto& [node, frame] : deferred_) schedule(node, frame, -1);
        enter_scheduled(-1, out);
    }
    join(out);
    core_.check_heads(out.size());
    return outcome;
}

void Gss::enter_rest(const Config& c, Configs& out) {
    sequences_.push_back(c);
    enter_scheduled(-1, out);
}

bool Gss::may_skip_rest(const Config& c) const {
    const auto& parts = core_.components[c.node].parts;
    return std::all_of(parts.begin() + raw(c.state), parts.end(), [&](NodeId part) { return core_.components[part].nullable; });
}

// Whether the text may end at this frame: all that follows it can be empty.
bool Gss::may_end_at(FrameId frame) {
    std::vector<FrameId> todo, seen;
    core_.members(frame, todo);
    while (!todo.empty()) {
        const FrameId id = todo.back();
        todo.pop_back();
        core_.pool.fuel().spend(1 + seen.size() / 4);
        if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
        seen.push_back(id);
        const Config at = core_.frames[id];
        if (at.node == kDone) return true;
        if (core_.is_sequence(at) && may_skip_rest(at)) core_.members(at.parent, todo);
    }
    return false;
}

}  // namespace guideway
