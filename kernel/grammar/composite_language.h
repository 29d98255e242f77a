// JSON arrays and objects as expressions, for arrays whose items must all be different.
//
// For the user: `start` makes an expression (Op::composite) of a grammar, whose root is an array or object; its
// derivatives are expressions again, like those of a leaf, and one that exists can be completed. `spelled` is the same of
// one value, in every order of its keys and every spelling of its parts; such expressions count as finite, so that
// `ExprTable::subtract` can take them away.
//
// For the maintainer: a state is what a machine is in, interned. No machine is in the middle of a step while another one
// needs it: arrays of different items in such an item have separate machines (analysis.cpp).
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
#include "guideway/base/intern_table.h"
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
    // Those of a pool, which are installed when they are first used.
    static CompositeLanguage& of(ExprPool& pool);

    // The texts of a grammar that was analysed (machine.h).
    ExprId start(std::vector<AnalysedNode>&& components, std::uint32_t root);
    // The same of a grammar that is analysed when its texts are first looked at: how long a shortest one is, which bytes
    // they can begin with, and how many digits its numbers distinguish is known before.
    using Build = std::function<AnalysedGrammar()>;
    ExprId later(Build build, std::uint32_t shortest, const ByteSet& first, std::uint32_t digits);
    // The JSON array or object that a text is, however it is written; nothing if it is none.
    std::optional<ExprId> spelled(std::string_view text);

    // For the pool, of the state that a value expression represents (external_language.h).
    bool accepting(std::uint32_t state) const override { return states_[state].accepting; }
    bool single(std::uint32_t state) const override { return machines_[states_[state].machine].single; }
    std::uint32_t at_least(std::uint32_t state) const override { return machines_[states_[state].machine].values; }
    std::uint32_t reach(std::uint32_t state) const override { return machines_[states_[state].machine].reach; }
    std::uint32_t shortest(std::uint32_t state) override;
    int best_byte(std::uint32_t state) override;
    ExprId next(std::uint32_t state, std::uint8_t byte) override;
    ByteSet begins(std::uint32_t state) override;
    void derive(std::uint32_t state, std::array<ExprId, 256>& out) override;

    // For masks: the machine, and where it is.
    Machine& machine(std::uint32_t state) { return machine_of(states_[state].machine); }
    std::vector<Config> configs(std::uint32_t state);

    std::size_t bytes() const override;

private:
    struct Late;
    struct Walker {
        std::unique_ptr<MachineTables> tables;
        std::unique_ptr<Machine> machine;
        bool single;  // one value
        std::uint32_t reach;
        std::uint32_t values;             // how many there are at least
        std::size_t learned;              // by the machine, when it was queried last
        std::unique_ptr<Late> late;       // of one that is made late
        std::uint32_t start = kInfinite;  // its first state
    };
    struct State {
        std::uint32_t machine : 31;
        std::uint32_t accepting : 1;
        std::uint32_t begin;  // of its configurations in configs_; those of the next state come after them
    };

    std::span<const Config> held(std::uint32_t state) const;
    Machine& machine_of(std::uint32_t number);
    bool is_late_start(std::uint32_t state) const { return machines_[states_[state].machine].start == state; }
    ExprId begin(std::vector<AnalysedNode>&& components, std::uint32_t root, bool single, std::uint32_t reach);
    ExprId intern(std::uint32_t machine, const std::vector<Config>& configs);
    void count_learned(std::uint32_t machine);

    ExprPool& pool_;
    std::vector<Walker> machines_;
    std::vector<State> states_;
    std::vector<Config> configs_;
    InternTable ids_;  // of states, by machine and configurations
    std::unordered_map<std::string, ExprId> spelled_;
    std::size_t bytes_ = 0;
};

}  // namespace guideway
