// Walks of a token trie from a configuration of an object or an array: byte by byte, with the component's own steps.
#pragma once

#include <cstdint>
#include <vector>

#include "guideway/base/tuning.h"
#include "guideway/grammar/machine.h"
#include "guideway/mask/leaf_walk.h"

namespace guideway {

struct MachineWalk {
    LeafWalk walked;                               // tokens that stay inside the component, and the nodes where it is left
    std::vector<std::uint32_t> context_dependent;  // tokens that depend on text before them, in rising order
};

// `subtrees`: of the trie, or null.
MachineWalk machine_walk(Machine& machine, const TrieForest& forest, const Config& config, const SubtreeAlphabets* subtrees,
                         LoopMemo& loops, const Tuning& tuning);

}  // namespace guideway
