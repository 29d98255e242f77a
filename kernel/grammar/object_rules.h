// The entries that an object may have next, and the cost of its shortest completion.
//
// For the maintainer: the functions only read configurations (object_steps.h steps them). They depend on each other: an entry is
// allowed if the object can be completed after it, and a shortest completion consists of allowed entries.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/grammar/machine_core.h"

namespace guideway {

class ObjectRules {
public:
    explicit ObjectRules(MachineCore& core) : core_(core), keys_(core.components.size(), kUnknownExpr) {}

    // Whether an object may have this entry next.
    bool allows_entry(NodeId node, Register regs, std::uint32_t label);
    // The same for many fixed keys. Valid until a record is interned, since it points into the table of records.
    class AllowedKeys {
    public:
        AllowedKeys(ObjectRules& rules, NodeId node, Register regs);
        AllowedKeys(const AllowedKeys&) = delete;  // `bits_` may point to its own member
        bool operator()(std::uint32_t label) const {
            if (k_.bounded) return rules_.allows_entry(node_, regs_, label);
            if (!k_.is_live(label)) return false;
            return k_.ordered ? label >= first_ && label <= last_ : !(bits_[label / 32] >> (label % 32) & 1);
        }

    private:
        ObjectRules& rules_;
        const AnalysedNode& k_;
        NodeId node_;
        Register regs_;
        std::uint32_t direct_, first_ = 0, last_ = 0;  // direct_: the register, if it has the bits itself
        const std::uint32_t* bits_ = nullptr;          // bits of the entries that were read
    };
    // Whether a fixed key is allowed next; whether any entry is.
    bool allows_fixed_key(NodeId node, Register regs);
    bool allows_any_entry(NodeId node, Register regs);
    bool may_close(const AnalysedNode& k, Register regs);
    // All fixed keys of an object, each before the label of its entry.
    ExprId keys(NodeId node);
    // Whether a key of this class of open keys was read whose text is not known.
    bool has_unknown_key(const AnalysedNode& k, Register regs, std::uint32_t label);
    // A class of open keys without the known texts of its keys that were read.
    ExprId open_keys(const AnalysedNode& k, Register regs, std::uint32_t label);
    // Registers after an entry whose value has a reading with these `marks`, and after an open key.
    Register after_entry(const AnalysedNode& k, Register regs, const Entry& entry, std::uint64_t marks);
    Register after_key(const AnalysedNode& k, Register regs, std::uint32_t label, ReadText read_text);
    std::optional<bool> can_complete(NodeId node, Register regs, std::uint32_t label, std::uint64_t marks);
    // The set of keys that a shortest completion could use: the text of an open key above `frame` matters only if it begins one.
    ValueSet watched_keys(const Config& frame, std::uint32_t further);

    // Bytes of the shortest completion of the object, which begins at a configuration of it.
    std::uint32_t cost(const Config& c);
    std::uint32_t entries_cost(NodeId node, Register regs);
    LabelDistance best_label(NodeId node, Register regs, ExprId state);
    // Call after `best_label` of `state`. `next`: the state after a byte on the shortest path to the key of that label.
    void follow_best_label(ExprId state, ExprId next);

private:
    // Demands that the remaining entries can meet. sure: one completion can meet all of them. twice: the same, whichever single
    // entry is left out. possible: for each of them, some entry can meet it.
    struct Cover {
        std::uint64_t sure = 0, twice = 0, possible = 0;
    };
    struct Offer {                         // remaining entries of an object without demands; each cost includes a comma
        std::uint32_t need = 0, room = 0;  // minimum and maximum number of further entries
        std::uint32_t required = 0;        // number of required properties among them
        std::uint64_t required_cost = 0;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> others;  // cost and label; a class of open keys can occur several times
    };
    bool seen(const AnalysedNode& k, Register regs, std::uint32_t label);
    std::uint32_t position(const AnalysedNode& k, Register regs);
    Cover cover(NodeId node, Register regs, std::uint32_t label);
    std::optional<bool> can_complete_by(NodeId node, Register regs, std::uint32_t label);
    std::uint32_t value_and_rest(NodeId node, Register regs, std::uint32_t label);
    std::uint32_t key_and_rest(NodeId node, Register regs);
    std::uint32_t plan_entries(NodeId node, Register regs);
    Offer offer(NodeId node, Register regs);
    std::uint32_t rest_after(NodeId node, Register regs, std::uint32_t label);
    void find_rests(const AnalysedNode& k, std::uint32_t from, Offer&& all);
    // `left` and `space`: minimum and maximum number of entries after the current one.
    void find_rests_in_any_order(const AnalysedNode& k, std::uint32_t from, Offer& all, std::uint32_t left, std::uint32_t space);
    void find_rests_in_order(const AnalysedNode& k, std::uint32_t from, const Offer& all, std::uint32_t left, std::uint32_t space);
    LabelDistance find_best_label(NodeId node, Register regs, ExprId state);

    MachineCore& core_;
    IdVector<NodeId, ExprId> keys_;                                  // kUnknownExpr: not made yet
    std::unordered_map<std::uint64_t, std::uint32_t> entries_cost_;  // by node and register
    struct {
        NodeId node = kDone;
        Register regs{};
        std::vector<std::uint32_t> costs;  // by label: cost after that entry
    } rests_;                              // of the last object
    struct {
        NodeId node = kDone;
        Register regs{};
        Cover all;
        std::vector<std::uint64_t> sure;  // by label
    } cover_;                             // of the last unordered object
    struct {
        NodeId node = kDone;
        Register regs{};
        ExprId state = kNone;
        LabelDistance label{};
    } best_label_;  // of the last call
};

}  // namespace guideway
