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
    Gss(MachineCore& core, Machine& machine, NodeId root);

    // Whether the grammar needs it.
    bool used() const { return used_; }
    // Adds the configurations at the start of a node.
    void enter(NodeId node, FrameId frame, Configs& out);
    // Adds the configurations that continue at a frame, or at many frames, joined.
    void resume(FrameId frame, ReadText read_text, Configs& out);
    void resume_all(const std::vector<FrameId>& frames, Configs& out);
    Outcome step(const Configs& from, std::uint8_t byte, Configs& out);
    // Adds the configurations at the start of the rest of a sequence.
    void enter_rest(const Config& c, Configs& out);
    bool may_skip_rest(const Config& c) const;
    bool may_end_at(FrameId frame);
    // During a step, values and items are deferred and entered at its end: once, above all frames that enter them.
    bool defers() const { return defers_; }
    void defer(NodeId node, FrameId frame) { deferred_.emplace_back(node, frame); }

private:
    Register record_of(const std::vector<FrameId>& frames);
    FrameId unite(const std::vector<FrameId>& frames, unsigned depth = 0);
    void continue_at(FrameId frame, ReadText read_text, Configs& out);
    void schedule(NodeId node, FrameId frame, int byte);
    void schedule_part(NodeId node, std::uint32_t part, FrameId frame, int byte);
    void schedule_sequences(int byte);
    void enter_scheduled(int byte, Configs& out);  // `byte`: only configurations that can begin with it; -1: all
    void join(Configs& configs);

    MachineCore& core_;
    Machine& machine_;
    bool used_ = false, defers_ = false;
    IdVector<NodeId, std::uint32_t> topological_rank_;
    std::vector<NodeId> ranked_;                          // by rank
    std::vector<std::uint32_t> worklist_;                 // a heap of the ranks of scheduled nodes
    std::vector<std::vector<FrameId>> scheduled_;         // by rank: the frames above which the node is to be entered
    std::unordered_map<Register, FrameId> gss_node_ids_;  // by the record of the united frames
    // Recursive calls of the current `unite`, up to kMaxFactored.
    unsigned factored_ = 0;
    std::vector<std::pair<NodeId, FrameId>> deferred_;            // nodes and the frames above which they are to be entered
    Configs sequences_;                                           // frames of sequences to continue with
    struct {                                                      // kept between steps to avoid allocations
        std::vector<std::pair<FrameId, ReadText>> before, after;  // frames to continue at, and the read text
        Configs waiting, entered;
        std::vector<FrameId> frames;
    } scratch_;
};

}  // namespace guideway
