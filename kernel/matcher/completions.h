// Shortest completions of the configurations of one automaton, and the tokens that fit a budget. Each object is for one call,
// under the store's lock.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "guideway/grammar/machine.h"
#include "guideway/mask/mask_engine.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

class Completions {
public:
    Completions(const TokenTable& vocabulary, Machine& machine, MaskEngine& engine, AutomatonId automaton)
        : vocabulary_(vocabulary), machine_(machine), engine_(engine), automaton_(automaton) {}

    // A shortest completion. Throws Error(limit) if it is too long.
    std::string text(Configs configs);
    // The longest common prefix of all completions up to where the text may end, if at most 4096 bytes; shorter inside a quotation.
    std::string forced(const StateSet& state_set);
    // Fewest tokens that spell a shortest completion, end token included; beyond a million bytes: its number of bytes.
    std::uint32_t tokens(Configs configs);
    // Clears the bits of tokens after which `left - 1` more do not complete the text. Returns an upper bound of the number of
    // tokens that any legal token needs after it.
    std::uint32_t keep_within(const Configs& configs, std::span<std::uint32_t> row, std::uint32_t left);

private:
    std::string next_forced(Configs configs, std::size_t& tried);  // `tried`: the number of steps by a byte
    std::uint32_t cost(const Configs& configs);                    // bytes of a shortest completion
    std::uint32_t fewest_tokens(Configs configs);
    std::uint32_t loop_needs(const Configs& configs, std::uint32_t node);

    const TokenTable& vocabulary_;
    Machine& machine_;
    MaskEngine& engine_;
    AutomatonId automaton_;
};

}  // namespace guideway
