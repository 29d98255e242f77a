#include "guideway/mask/machine_walk.h"

#include <algorithm>

#include "guideway/base/sort_unique.h"

namespace guideway {

namespace {

constexpr std::uint64_t kNodeWork = 10;  // of a node and a configuration

class MachineWalker {
public:
    MachineWalker(Machine& machine, const TrieForest& forest, const Config& config, const SubtreeAlphabets* subtrees, LoopMemo& loops,
                  const Tuning& tuning)
        : machine_(machine), forest_(forest), x_(*forest.trie), follow_(machine.component(config.node).follow), subtrees_(subtrees),
          loops_(loops), tuning_(tuning), path_{{config.node, config.state, config.regs, kBottom}} {}

    MachineWalk run() {
        enter(0, 0);
        for (const TrieForest::Part& part : forest_.parts)
            for (std::uint32_t i = part.begin; i < part.end;) {
                const std::size_t depth = x_.depth[i] - part.above;
                const std::uint32_t next = filters_[depth - 1].next(x_, i);
                i = next != i ? next : visit(i, depth);
            }
        sort_unique(made_.context_dependent);
        return std::move(made_);
    }

private:
    // Returns the node to continue with.
    std::uint32_t visit(std::uint32_t i, std::size_t depth) {
        const std::uint32_t end = x_.end[i];
        begin_.resize(depth + 1);
        path_.resize(begin_[depth], Config{});
        Outcome outcome;
        stepped_.clear();
        machine_.pool().fuel().spend(kNodeWork * (1 + begin_[depth] - begin_[depth - 1]));
        for (std::size_t c = begin_[depth - 1]; c < begin_[depth]; ++c) machine_.step(path_[c], x_.byte[i], stepped_, outcome);
        if (stepped_.size() > 1) sort_unique(stepped_);
        if (outcome.context_dependent) {  // the text before decides: these tokens are stepped byte by byte later
            made_.context_dependent.insert(made_.context_dependent.end(), x_.tokens.begin() + x_.first_token[i],
                                           x_.tokens.begin() + x_.first_token[end]);
            return end;
        }
        if (outcome.popped && follow_.contains(x_.byte[i])) made_.walked.exit_nodes.push_back(i);
        if (stepped_.empty()) return end;
        if (end > i + 1 && loops(i)) {
            made_.walked.add(x_.first_token[i], x_.first_token[end]);
            return end;
        }
        path_.insert(path_.end(), stepped_.begin(), stepped_.end());
        begin_.push_back(path_.size());
        made_.walked.add(x_.first_token[i], x_.first_token[i + 1]);
        if (end > i + 1) enter(depth, i);
        return i + 1;
    }

    // Whether the only configuration is in a leaf that loops by all characters below the node.
    bool loops(std::uint32_t node) {
        if (!subtrees_ || !tuning_.self_loops || stepped_.size() != 1 || !machine_.is_leaf(stepped_[0])) return false;
        const ExprId state = stepped_[0].expr();
        const SelfLoops* const found = loops_.find(machine_.pool(), *subtrees_, state, true);
        return found &&
               subtrees_->loop(node, *found, machine_.pool()[state].nullable ? machine_.component(stepped_[0].node).follow : ByteSet{});
    }

    void enter(std::size_t depth, std::uint32_t node) {
        filters_.resize(depth + 1);
        filters_[depth] = {};
        if (!x_.wide(node) || !tuning_.child_filters || (depth == 0 && !forest_.whole())) return;
        ByteSet bytes;
        for (std::size_t c = begin_[depth]; c < path_.size(); ++c) bytes |= path_[c].node == kDone ? follow_ : machine_.begins(path_[c]);
        filters_[depth] = ChildFilter(x_, node, bytes);
    }

    Machine& machine_;
    const TrieForest& forest_;
    const TokenTrie& x_;
    const ByteSet& follow_;
    const SubtreeAlphabets* subtrees_;
    LoopMemo& loops_;
    const Tuning& tuning_;
    Configs path_;                          // configurations of all depths, one after the other
    std::vector<std::size_t> begin_{0, 1};  // depth d: [begin_[d], begin_[d + 1])
    std::vector<ChildFilter> filters_;      // by depth
    Configs stepped_;
    MachineWalk made_;
};

}  // namespace

MachineWalk machine_walk(Machine& machine, const TrieForest& forest, const Config& config, const SubtreeAlphabets* subtrees,
                         LoopMemo& loops, const Tuning& tuning) {
    return MachineWalker(machine, forest, config, subtrees, loops, tuning).run();
}

}  // namespace guideway
