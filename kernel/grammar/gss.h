// The graph-structured stack. In grammars that share stacks, one configuration represents all stacks with equal top. Most
// recursive grammars share stacks, and some others (gss.cpp).
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
    // Adds the configurations at the start of a node.
    void enter(std::uint32_t node, std::uint32_t frame, Configs& out);
    // Adds the configurations that continue at a frame, or at many frames, joined.
    void resume(std::uint32_t frame, std::uint32_t read_text, Configs& out);
    void resume_all(const std::vector<std::uint32_t>& frames, Configs& out);
    Outcome step(const Configs& from, std::uint8_t byte, Configs& out);
    // Adds the configurations at the start of the rest of a sequence.
    void enter_rest(const Config& c, Configs& out);
    bool may_skip_rest(const Config& c) const;
    bool may_end_at(std::uint32_t frame);
    // During a step, values and items are deferred and entered at its end: once, above all frames that enter them.
    bool defers() const { return defers_; }
    void defer(std::uint32_t node, std::uint32_t frame) { deferred_.emplace_back(node, frame); }

private:
    std::uint32_t unite(const std::vector<std::uint32_t>& frames, unsigned depth = 0);
    void continue_at(std::uint32_t frame, std::uint32_t read_text, Configs& out);
    void schedule(std::uint32_t node, std::uint32_t frame, int byte);
    void schedule_part(std::uint32_t node, std::uint32_t part, std::uint32_t frame, int byte);
    void schedule_sequences(int byte);
    void enter_scheduled(int byte, Configs& out);  // `byte`: only configurations that can begin with it; -1: all
    void join(Configs& configs);

    MachineCore& core_;
    Machine& machine_;
    bool used_ = false, defers_ = false;
    std::vector<std::uint32_t> topological_rank_, ranked_, worklist_;  // worklist_: a heap of the ranks of scheduled nodes
    std::vector<std::vector<std::uint32_t>> scheduled_;                // by rank: the frames above which the node is to be entered
    std::unordered_map<std::uint32_t, std::uint32_t> gss_node_ids_;    // by the record of the united frames
    // Recursive calls of the current `unite`, up to kMaxFactored.
    unsigned factored_ = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> deferred_;          // nodes and the frames above which they are to be entered
    Configs sequences_;                                                      // frames of sequences to continue with
    struct {                                                                 // kept between steps to avoid allocations
        std::vector<std::pair<std::uint32_t, std::uint32_t>> before, after;  // frames to continue at, and the read text
        Configs waiting, entered;
        std::vector<std::uint32_t> frames;
    } scratch_;
};

}  // namespace guideway
