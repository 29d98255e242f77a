// The machine: walks a grammar byte by byte.
//
// For the user: a state of the text so far is a set of configurations; `start` makes the first ones, `step` moves one
// by a byte. Every configuration that exists can be completed. A configuration is a component (grammar node), the
// state and the register it is in, and the frame to return to. kDone is the configuration of "nothing more".
//
// For the maintainer: a leaf that can end no text further is left at once; one that might continue is left when the
// next byte can follow it (`follow`), so both paths are kept where both are open. A sequence's last part gets the
// sequence's own return frame: right recursion needs no stack. Objects (object_rules.h, object_steps.h) and arrays
// (array.h) keep what they have seen in the register: bits, or the number of an interned record. In grammars that share
// stacks (gss.h), one frame can represent several, where paths meet. These parts share the tables of machine_core.h.
//
// Where a key may come there is one configuration for the trie of fixed names, and a leaf for each class of open keys,
// above a frame that waits for the name. Such a leaf has the read text of what it read in its register; what came
// before is taken out of the class's expression. Results of leaves in masks do not keep the text, nor does a walk that
// does not start at a leaf's beginning. Where a mask continues after these, the text is unknown, and tokens for which
// it would matter are reported as `context_dependent`.
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

// Whether a configuration of a node is where white space changes nothing but that values or keys may begin after it.
bool is_spaced(const AnalysedNode& k, std::uint32_t state);

class Machine {
public:
    // `tables` outlive this; they may be emptied between two calls.
    Machine(AnalysedNodes components, std::uint32_t root, ExprPool& pool, MachineTables& tables, MachineLimits limits = {});
    Machine(const Machine&) = delete;  // its parts refer to it

    void start(Configs& out);
    // Adds what `config` becomes by `byte`.
    void step(const Config& config, std::uint8_t byte, Configs& out, Outcome& outcome);
    Outcome step_all(const Configs& from, std::uint8_t byte, Configs& out);
    // By a byte, in place, where it only stays in its leaf, of which nothing is noted; false: more happens, nothing has changed.
    bool step_within(Config& c, std::uint8_t byte) {
        if (!core_.is_leaf(c) || (c.regs != ReadTexts::kUnknown && c.regs != ReadTexts::kOther)) return false;
        const ExprId next = core_.pool.dfa.derivative(c.state, byte);
        if (next <= kEmpty || (core_.pool[c.state].nullable && core_.components[c.node].follow.contains(byte))) return false;
        c.state = next;
        return true;
    }
    // Whether `step_inside` may be called (not where paths that meet are joined at each byte), and is worth it: for a leaf
    // alone that is not rowless, `step_within` is as quick.
    bool may_step_inside(const Configs& configs) const {
        return !gss_.used() && (configs.size() != 1 || !core_.is_leaf(configs[0]) || core_.pool[configs[0].state].rowless);
    }
    // Only where `may_step_inside`: by several bytes where every configuration continues inside a leaf or a fixed name, or ends
    // for good; false: more may happen, nothing has changed.
    bool step_inside(Configs& configs, std::string_view text);
    // Forgets the text that key and item leaves have read if no shortest completion, now or within `further` bytes, could
    // collide with it. Costs do not change. Later steps record no text for these configurations.
    void settle(Configs& configs, std::uint32_t further);
    // Whether the cost of a configuration may exceed the length of its completion, because it does not know the text read.
    bool recalls() const { return recalls_; }
    // Adds what continues once the component above `frame` has ended; `read_text`: what it read, where that is known.
    void resume(std::uint32_t frame, Configs& out, std::uint32_t read_text = ReadTexts::kUnknown);
    // The same above many frames, joined; for grammars that share stacks.
    void resume_all(const std::vector<std::uint32_t>& frames, Configs& out) { gss_.resume_all(frames, out); }
    // Called by the parts of the machine. The first is `resume` for a frame that is no sequence. The second adds what is at
    // the first byte of a value or item that follows the byte of a step.
    void resume_entry(std::uint32_t frame, Configs& out, std::uint32_t read_text);
    void enter_after(std::uint32_t node, const Config& frame, Configs& out) {
        if (gss_.defers()) gss_.defer(node, push(frame));
        else enter({node, 0, 0, push(frame)}, out);
    }
    std::uint32_t size() const { return static_cast<std::uint32_t>(core_.components.size()); }
    // Whether paths that meet share one stack (gss.h).
    bool shares_stacks() const { return gss_.used(); }
    // The number of a frame, and the frame; those that one represents.
    std::uint32_t push(const Config& frame) { return core_.push(frame); }
    const Config& frame(std::uint32_t id) const { return core_.frames[id]; }
    void members(std::uint32_t frame, std::vector<std::uint32_t>& out) { core_.members(frame, out); }
    bool accepting(const Config& config);
    // Bytes of the shortest text that completes it.
    std::uint32_t cost(const Config& config);
    // The least cost of the set; `out`: those that have it, and of them what is needed for it.
    std::uint32_t cheapest(const Configs& configs, Configs& out);
    // The smallest byte that begins a shortest completion of the set; -1 if it is complete already.
    int best_byte(const Configs& configs);

    const AnalysedNode& component(std::uint32_t node) const { return core_.components[node]; }
    // Gives its components, if they are its own, their names in the memo of runs, once: f(component) -> id.
    template <class F>
    void name(F&& f) {
        if (std::exchange(named_, true)) return;
        core_.components.name(f);
    }
    // Adds the successors by white space of a configuration before a key, value or item, except itself.
    void after_space(const Config& c, Configs& out);
    // Whether an object or array that is before its first entry or after one may end there.
    bool may_close(const Config& c);
    // Where an object is after the value of an entry, if what its entries hold does not matter to it.
    Config after_value(const Config& c, std::uint32_t label) { return object_steps_.after_value(c, label); }
    // The bytes that a configuration can continue with, and perhaps more.
    ByteSet begins(const Config& c);
    bool is_leaf(const Config& c) const { return core_.is_leaf(c); }
    bool is_sequence(const Config& c) const { return core_.is_sequence(c); }
    std::size_t frame_count() const { return core_.frames.size(); }
    // The number of stacks, records and bytes of texts that were met.
    std::size_t learned() const { return core_.learned(); }
    ExprPool& pool() { return core_.pool; }
    ObjectRules& object_rules() { return object_rules_; }

private:
    // Adds what is at the first byte of a node, or (a sequence) of its part number `state`.
    void enter(Config start, Configs& out);
    void leaf_becomes(const Config& c, ExprId state, std::string_view read, Configs& out);
    ExprId leaf_after(const Config& c, std::string_view text);
    bool matters(std::uint32_t frame, std::uint32_t read_text, std::uint32_t further);
    std::uint32_t local_cost(const Config& c);
    std::uint32_t frame_cost(std::uint32_t id);

    MachineCore core_;
    std::uint32_t root_;
    bool recalls_ = false, named_ = false;
    ObjectRules object_rules_;
    ObjectSteps object_steps_;
    Arrays arrays_;
    Gss gss_;
    std::unordered_map<std::uint32_t, std::uint32_t> watched_;  // by frame: the set of texts that matter, or kAllTexts
    Configs todo_, entering_, inside_;
};

}  // namespace guideway
