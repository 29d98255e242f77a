// What an object may have next, and what it costs to complete it.
//
// For the maintainer: nothing here steps. The rules depend on each other: whether an entry may come depends on whether the
// object can still be completed after it, and the cheapest completion consists of entries that may come.
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
    bool may_open(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    // The same of many with fixed names; valid until a record is interned: it points into the table of records.
    class AllowedKeys {
    public:
        AllowedKeys(ObjectRules& rules, std::uint32_t node, std::uint32_t regs);
        AllowedKeys(const AllowedKeys&) = delete;  // it points into itself
        bool operator()(std::uint32_t label) const {
            if (k_.bounded) return rules_.may_open(node_, regs_, label);
            if (!k_.is_live(label)) return false;
            return k_.ordered ? label >= first_ && label <= last_ : !(bits_[label / 32] >> (label % 32) & 1);
        }

    private:
        ObjectRules& rules_;
        const AnalysedNode& k_;
        std::uint32_t node_, regs_, first_ = 0, last_ = 0;
        const std::uint32_t* bits_ = nullptr;  // entries that came
    };
    // Whether a fixed name may come; whether any entry may.
    bool may_open_some(std::uint32_t node, std::uint32_t regs);
    bool may_continue(std::uint32_t node, std::uint32_t regs);
    bool may_close(const AnalysedNode& k, std::uint32_t regs);
    // All fixed names of an object, each before the label of its entry.
    ExprId keys(std::uint32_t node);
    bool has_unknown_key(const AnalysedNode& k, std::uint32_t regs, std::uint32_t label);
    ExprId open_keys(const AnalysedNode& k, std::uint32_t regs, std::uint32_t label);
    std::uint32_t after_entry(const AnalysedNode& k, std::uint32_t regs, const Entry& entry, std::uint64_t marks);
    std::uint32_t after_key(const AnalysedNode& k, std::uint32_t regs, std::uint32_t label, std::uint32_t read_text);
    std::optional<bool> can_complete(std::uint32_t node, std::uint32_t regs, std::uint32_t label, std::uint64_t marks);
    std::uint32_t watched_keys(const Config& named, std::uint32_t further);

    // Bytes of the shortest completion of the object, which begins at a configuration of it.
    std::uint32_t cost(const Config& c);
    std::uint32_t entries_cost(std::uint32_t node, std::uint32_t regs);
    LabelDistance best_label(std::uint32_t node, std::uint32_t regs, ExprId state);
    // Call after `best_label` of `state`. `next`: the state after a byte on the shortest way to the name of that label.
    void follow_best_label(ExprId state, ExprId next);

private:
    struct Cover {  // demands that entries can meet: all at once; by several entries each; perhaps
        std::uint64_t sure = 0, twice = 0, possible = 0;
    };
    struct Offer {                         // the entries that may still come, of an object without demands; each cost with a comma
        std::uint32_t need = 0, room = 0;  // how many must come, and may come
        std::uint32_t required = 0;        // how many of them by name
        std::uint64_t required_cost = 0;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> others;  // cost, label; open ones more than once
    };
    bool seen(const AnalysedNode& k, std::uint32_t regs, std::uint32_t label);
    std::uint32_t position(const AnalysedNode& k, std::uint32_t regs);
    Cover cover(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    std::optional<bool> can_complete_by(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    std::uint32_t value_and_rest(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    std::uint32_t key_and_rest(std::uint32_t node, std::uint32_t regs);
    std::uint32_t plan_entries(std::uint32_t node, std::uint32_t regs);
    Offer offer(std::uint32_t node, std::uint32_t regs);
    std::uint32_t rest_after(std::uint32_t node, std::uint32_t regs, std::uint32_t label);
    void find_rests(const AnalysedNode& k, std::uint32_t from, Offer&& all);
    // `left`: entries that must come besides the one at hand; `space`: that may.
    void find_rests_in_any_order(const AnalysedNode& k, std::uint32_t from, Offer& all, std::uint32_t left, std::uint32_t space);
    void find_rests_in_order(const AnalysedNode& k, std::uint32_t from, const Offer& all, std::uint32_t left, std::uint32_t space);
    LabelDistance find_best_label(std::uint32_t node, std::uint32_t regs, ExprId state);

    MachineCore& core_;
    std::vector<ExprId> keys_;                                       // by node; kUnknownExpr: not made yet
    std::unordered_map<std::uint64_t, std::uint32_t> entries_cost_;  // by node and register
    struct {
        std::uint32_t node = kDone, regs = 0;
        std::vector<std::uint32_t> costs;  // by label: of what is needed after that entry
    } rests_;                              // of the object that was looked at last
    struct {
        std::uint32_t node = kDone, regs = 0;
        Cover all;
        std::vector<std::uint64_t> sure;  // by label
    } cover_;                             // of the unordered object that was looked at last
    struct {
        std::uint32_t node = kDone, regs = 0;
        ExprId state = kNone;
        LabelDistance label{};
    } best_label_;  // the same
};

}  // namespace guideway
