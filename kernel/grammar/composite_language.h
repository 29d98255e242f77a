// JSON arrays and objects as expressions, for arrays whose items must all be different.
//
// For the user: `start` returns an expression (Op::composite) of a grammar whose root is an array or object. Its derivatives are
// such expressions too, and each that is not kNone can be completed. `spelled` does the same for one value, in every order of
// its keys and every spelling of its parts; such expressions count as finite, so that `ExprTable::subtract` can exclude them.
//
// For the maintainer: a state is an interned set of configurations of a machine. A machine is never called during its own step:
// unique arrays inside such an item have separate machines (analysis.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/base/id.h"
#include "guideway/base/intern_table.h"
#include "guideway/grammar/readings.h"
#include "guideway/regex/expr_pool.h"
#include "guideway/regex/external_language.h"

namespace guideway {

class Machine;
struct MachineTables;
struct AnalysedNode;
struct Config;
struct AnalysedGrammar;

class CompositeLanguage final : public ExternalLanguage {
public:
    explicit CompositeLanguage(ExprPool& pool);
    ~CompositeLanguage() override;
    // The composite language of a pool. It is installed at the first call.
    static CompositeLanguage& of(ExprPool& pool);

    // The expression of an analysed grammar (machine.h).
    ExprId start(IdVector<NodeId, AnalysedNode>&& components, NodeId root);
    // The same for a grammar that is analysed when the expression is first used. The length of a shortest text, the possible first
    // bytes, and the number of digits that its numbers distinguish must be known before.
    using Build = std::function<AnalysedGrammar()>;
    ExprId later(Build build, std::uint32_t shortest, const ByteSet& first, std::uint32_t digits);
    // All spellings of a JSON array or object; no value for other texts.
    std::optional<ExprId> spelled(std::string_view text);

    // Properties of states, for the pool (external_language.h).
    bool accepting(CompositeState state) const override { return states_[state].accepting; }
    bool single(CompositeState state) const override { return machines_[states_[state].machine].single; }
    std::uint32_t at_least(CompositeState state) const override { return machines_[states_[state].machine].values; }
    std::uint32_t reach(CompositeState state) const override { return machines_[states_[state].machine].reach; }
    std::uint32_t shortest(CompositeState state) override;
    int best_byte(CompositeState state) override;
    ExprId next(CompositeState state, std::uint8_t byte) override;
    ByteSet begins(CompositeState state) override;
    void derive(CompositeState state, std::array<ExprId, 256>& out) override;

    // For masks: the machine of a state, and its configurations.
    Machine& machine(CompositeState state) { return machine_of(states_[state].machine); }
    std::vector<Config> configs(CompositeState state);

    std::size_t bytes() const override;

private:
    struct Late;
    struct OwnedMachine {
        std::unique_ptr<MachineTables> tables;
        std::unique_ptr<Machine> machine;
        bool single;                            // it has one value
        std::uint32_t reach;                    // see ExternalLanguage::reach
        std::uint32_t values;                   // lower bound of the number of values
        std::size_t stored;                     // `Machine::stored_items` at the last count
        std::unique_ptr<Late> late;             // how to construct it at its first use; null: it was constructed at once
        std::optional<CompositeState> start{};  // first state of a machine that is constructed at its first use
    };
    struct State {
        std::uint32_t machine : 31;
        std::uint32_t accepting : 1;
        std::uint32_t begin;  // of its configurations in `configs_`; they end where those of the next state begin
    };

    std::span<const Config> held(CompositeState state) const;
    Machine& machine_of(std::uint32_t number);
    bool is_late_start(CompositeState state) const { return machines_[states_[state].machine].start == state; }
    ExprId begin(IdVector<NodeId, AnalysedNode>&& components, NodeId root, bool single, std::uint32_t reach);
    ExprId intern(std::uint32_t machine, const std::vector<Config>& configs);
    void count_stored(std::uint32_t machine);

    ExprPool& pool_;
    std::vector<OwnedMachine> machines_;
    IdVector<CompositeState, State> states_;
    std::vector<Config> configs_;
    InternTable ids_;  // of states, by machine and configurations
    std::unordered_map<std::string, ExprId> spelled_;
    std::size_t bytes_ = 0;
};

}  // namespace guideway
