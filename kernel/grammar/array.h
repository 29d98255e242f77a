// Arrays: the items that are allowed next, shortest completions, and steps byte by byte.
#pragma once

#include <cstdint>
#include <vector>

#include "guideway/grammar/machine_core.h"

namespace guideway {

class Machine;

class Arrays {
public:
    Arrays(MachineCore& core, Machine& machine) : core_(core), machine_(machine) {}

    // Adds the successors of a configuration by a byte.
    void step(const Config& c, std::uint8_t byte, Configs& out, Outcome& outcome);
    // The byte that begins a shortest completion; -1: the byte is that of a configuration in `instead`.
    int best_byte(const Config& c, Configs& instead);
    // Bytes of the shortest completion of the array, which begins at a configuration of it.
    std::uint32_t cost(const Config& c);
    bool may_have_item(const AnalysedNode& k, Register regs);
    bool may_end(const AnalysedNode& k, Register regs);
    void enter_item(const Config& c, Configs& out);
    // The register after an item that must be unique, with its text.
    Register after_unique(const AnalysedNode& k, Register regs, ReadText read_text);
    // See `ObjectRules::watched_keys`.
    ValueSet watched_items(const Config& frame, std::uint32_t further);

private:
    std::uint32_t items_so_far(const AnalysedNode& k, Register regs);
    Register after_item(const AnalysedNode& k, Register regs, std::uint64_t marks);
    const std::vector<NodeId>& leaves_at(const AnalysedNode& k, Register regs);
    std::vector<ExprId> classes_at(const AnalysedNode& k, Register regs);
    ExprId unused(const AnalysedNode& k, Register regs, NodeId leaf);
    std::uint32_t items_cost(const AnalysedNode& k, Register regs);
    std::uint32_t item_and_rest(const AnalysedNode& k, Register regs);

    MachineCore& core_;
    Machine& machine_;
};

}  // namespace guideway
