// The machine: a pushdown automaton that reads a text of the grammar byte by byte.
//
// For the user: the state of a text is a set of configurations; `start` makes the first ones, `step` moves one by a byte. Every
// configuration can be completed. A configuration is a component (grammar node), the state and the register in it, and the frame
// to return to. A configuration with the node kDone has read the whole text.
//
// For the maintainer: a leaf that has read a text without any continuation ends at once; one that can continue ends when the next
// byte can follow it (`follow`): if both are possible, both configurations are kept. The last part of a sequence gets the return
// frame of the sequence, so right recursion needs no stack. Objects (object_rules.h, object_steps.h) and arrays (array.h) record
// their entries in the register: bits, or the number of an interned record. In grammars that share stacks (gss.h), one frame
// can represent several. These parts share the tables of machine_core.h.
//
// Where a key may begin, there is one configuration for the trie of fixed keys, and for each class of open keys a leaf above a
// frame of the object in `Phase::below_leaf`. The register of such a leaf is its read text; earlier keys of the object are excluded
// from the leaf's expression. When the leaf ends, the frame adds the text to the object's register
// (`ObjectRules::after_key`). Cached results of leaves in masks do not depend on the read text, and a walk from another state
// than the start of a leaf does not know it. If a mask continues after these, the text is unknown, and tokens that depend on it
// are reported as `context_dependent`.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/grammar/array.h"
#include "guideway/grammar/gss.h"
#include "guideway/grammar/machine_core.h"
#include "guideway/grammar/object_rules.h"
#include "guideway/grammar/object_steps.h"

namespace guideway {

// Whether a configuration of a node is at a place where white space can be read, and changes nothing but that values or keys can
// begin after it.
bool is_spaced(const AnalysedNode& k, NodeState state);

class Machine {
public:
    // `tables` must outlive the machine; they can be emptied between two calls.
    Machine(AnalysedNodes components, NodeId root, ExprPool& pool, MachineTables& tables, MachineLimits limits = {});
    Machine(const Machine&) = delete;  // its members have references to it

    void start(Configs& out);
    // Adds the configurations that follow `config` by `byte`.
    void step(const Config& config, std::uint8_t byte, Configs& out, Outcome& outcome);
    Outcome step_all(const Configs& from, std::uint8_t byte, Configs& out);
    // Steps in place by a byte that stays in a leaf whose text is not recorded. Returns false in other cases; then nothing has
    // changed.
    bool step_within(Config& c, std::uint8_t byte) {
        if (!core_.is_leaf(c) || (c.read_text() != ReadTexts::kUnknown && c.read_text() != ReadTexts::kIrrelevant)) return false;
        const ExprId next = core_.pool.dfa.derivative(c.expr(), byte);
        if (next <= kEmpty || (core_.pool[c.expr()].nullable && core_.components[c.node].follow.contains(byte))) return false;
        c.set_expr(next);
        return true;
    }
    // Whether `step_inside` may be called (not in grammars that share stacks) and is faster: for a single leaf whose state has a row
    // (lazy_dfa.h), `step_within` is as fast.
    bool may_step_inside(const Configs& configs) const {
        return !gss_.used() && (configs.size() != 1 || !core_.is_leaf(configs[0]) || core_.pool[configs[0].expr()].rowless);
    }
    // Needs `may_step_inside`. Steps by several bytes if every configuration stays inside a leaf or a fixed key, or has no
    // successor. Returns false in other cases; then nothing has changed.
    bool step_inside(Configs& configs, std::string_view text);
    // Removes the read text of leaves of keys and items that no shortest completion, now or within `further` bytes, could
    // repeat. Costs do not change. Later steps record no text for these configurations.
    void drop_irrelevant_texts(Configs& configs, std::uint32_t further);
    // Whether the cost of a configuration may be larger than the length of its shortest completion, since costs do not use read texts.
    bool cost_is_upper_bound() const { return cost_is_upper_bound_; }
    // Adds the configurations that continue after the component above `frame` has ended. `read_text`: its text, if it is known.
    void resume(FrameId frame, Configs& out, ReadText read_text = ReadTexts::kUnknown);
    // The same for many frames, joined; in grammars that share stacks.
    void resume_all(const std::vector<FrameId>& frames, Configs& out) { gss_.resume_all(frames, out); }
    // For the parts of the machine. `resume_entry` is `resume` for a frame that is no sequence. `enter_after` adds the configurations
    // at the start of a value or item, after the byte of a step.
    void resume_entry(FrameId frame, Configs& out, ReadText read_text);
    void enter_after(NodeId node, const Config& frame, Configs& out) {
        if (gss_.defers()) gss_.defer(node, push(frame));
        else enter({node, {}, {}, push(frame)}, out);
    }
    // Whether the grammar shares stacks (gss.h).
    bool shares_stacks() const { return gss_.used(); }
    // The number of a frame; the frame of a number; the frames that one represents.
    FrameId push(const Config& frame) { return core_.push(frame); }
    const Config& frame(FrameId id) const { return core_.frames[id]; }
    void members(FrameId frame, std::vector<FrameId>& out) { core_.members(frame, out); }
    bool accepting(const Config& config);
    // Bytes of the shortest text that completes it.
    std::uint32_t cost(const Config& config);
    // The least cost in the set. `out`: the configurations that have it, without alternatives of leaves that cost more.
    std::uint32_t cheapest(const Configs& configs, Configs& out);
    // The smallest byte that begins a shortest completion of the set; -1 if the text is complete or cannot be completed.
    int best_byte(const Configs& configs);

    const AnalysedNode& component(NodeId node) const { return core_.components[node]; }
    const AnalysedNodes& components() const { return core_.components; }
    // Sets the ids of the components that it owns (`AnalysedNode::id`) at the first call: f(component) -> id.
    template <class F>
    void set_ids(F&& f) {
        if (std::exchange(has_ids_, true)) return;
        core_.components.set_ids(f);
    }
    // Adds the successors of a configuration before a key, value or item by white space, except the configuration itself.
    void after_space(const Config& c, Configs& out);
    // Whether an object or array may end here: before its first entry, or after an entry.
    bool may_close(const Config& c);
    // The configuration of an object after the value of an entry, if demands and counters do not depend on values.
    Config after_value(const Config& c, std::uint32_t label) { return object_steps_.after_value(c, label); }
    // A superset of the bytes that a configuration can continue with.
    ByteSet begins(const Config& c);
    bool is_leaf(const Config& c) const { return core_.is_leaf(c); }
    bool is_sequence(const Config& c) const { return core_.is_sequence(c); }
    std::size_t frame_count() const { return core_.frames.size(); }
    // See `MachineCore::stored_items`.
    std::size_t stored_items() const { return core_.stored_items(); }
    ExprPool& pool() { return core_.pool; }
    ObjectRules& object_rules() { return object_rules_; }

private:
    // Adds the configurations at the start of a node, or of part number `state` of a sequence.
    void enter(Config start, Configs& out);
    void leaf_becomes(const Config& c, ExprId state, std::string_view read, Configs& out);
    ExprId leaf_after(const Config& c, std::string_view text);
    bool is_text_relevant(FrameId frame, ReadText read_text, std::uint32_t further);
    std::uint32_t local_cost(const Config& c);
    std::uint32_t frame_cost(FrameId id);

    MachineCore core_;
    NodeId root_;
    bool cost_is_upper_bound_ = false, has_ids_ = false;
    ObjectRules object_rules_;
    ObjectSteps object_steps_;
    Arrays arrays_;
    Gss gss_;
    // By frame: the set of texts for which `is_text_relevant` is true, or UsedValues::kAllTexts.
    std::unordered_map<FrameId, ValueSet> watched_;
    Configs todo_, entering_, inside_;
};

}  // namespace guideway
