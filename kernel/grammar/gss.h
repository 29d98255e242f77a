// The graph-structured stack: in grammars that share stacks, paths that meet are followed together. Most recursive
// grammars share stacks, and some others (gss.cpp).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/grammar/machine_core.h"

namespace guideway {

class Machine;

class Gss {
public:
    Gss(MachineCore& core, Machine& machine, std::uint32_t root);

    // Whether the grammar needs it.
    bool used() const { return used_; }
    // Adds what is at the first byte of a node.
    void enter(std::uint32_t node, std::uint32_t frame, Configs& out);
    // Adds what continues above a frame; above many, joined.
    void resume(std::uint32_t frame, std::uint32_t read_text, Configs& out);
    void resume_all(const std::vector<std::uint32_t>& frames, Configs& out);
    Outcome step(const Configs& from, std::uint8_t byte, Configs& out);
    // Adds what is at the first bytes of the rest of a sequence.
    void enter_rest(const Config& c, Configs& out);
    bool may_skip_rest(const Config& c) const;
    bool may_end_at(std::uint32_t frame);
    // While a step runs, values and items are entered when it is done: once, above all that enter them.
    bool defers() const { return defers_; }
    void defer(std::uint32_t node, std::uint32_t frame) { deferred_.emplace_back(node, frame); }

private:
    std::uint32_t unite(const std::vector<std::uint32_t>& frames, unsigned depth = 0);
    void end(std::uint32_t frame, std::uint32_t read_text, Configs& out);
    void wait(std::uint32_t node, std::uint32_t frame, int byte);
    void wait_part(std::uint32_t node, std::uint32_t part, std::uint32_t frame, int byte);
    void wait_sequences(int byte);
    void close(int byte, Configs& out);  // `byte`: only what can begin with it; -1: everything
    void join(Configs& configs);

    MachineCore& core_;
    Machine& machine_;
    bool used_ = false, defers_ = false;
    std::vector<std::uint32_t> topological_rank_, ranked_, worklist_;  // worklist: a heap of ranks whose nodes wait
    std::vector<std::vector<std::uint32_t>> waiting_;                  // by rank: frames to enter the node above
    std::unordered_map<std::uint32_t, std::uint32_t> gss_node_ids_;    // by the record of the frames that are united
    unsigned factored_ = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> deferred_;          // nodes, and the frames above which
    Configs sequences_;                                                      // frames of sequences to continue with
    struct {                                                                 // kept between steps, so that none has to ask for memory
        std::vector<std::pair<std::uint32_t, std::uint32_t>> before, after;  // frames to continue above, and what was read
        Configs waiting, entered;
        std::vector<std::uint32_t> frames;
    } scratch_;
};

}  // namespace guideway
