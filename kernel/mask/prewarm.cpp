// Computes runs before a mask needs them, while a constraint is compiled: then no caller waits for a mask.
#include <unordered_set>

#include "guideway/mask/mask_engine.h"

namespace guideway {

namespace {

// Units of work after which no further run is begun. A third or three times as much would change new steps by 2 % at most
// (decision 7).
constexpr std::uint64_t kEnough = 30'000;
constexpr std::uint64_t kMost = 10 * kEnough;  // limit, for a single run that takes long
constexpr std::uint64_t kStateWork = 200;      // for a state, whose run may be cached already

}  // namespace

// Nearly every text needs these runs, and they are the most expensive part of a new mask. A leaf that was warmed up for another
// automaton costs a look-up. States after an opening quote are first: each string passes through one, but a mask begins at the start
// of a string only where the token before it ends before the quote. Sets of texts are left out: their walks visit the nodes of these
// texts only.
void MaskEngine::warm_up_leaves(Machine& machine, AutomatonId automaton) {
    begin_use(automaton);
    ExprPool& pool = machine.pool();
    const auto key = [](const AnalysedNode& leaf) { return std::uint64_t{raw(leaf.id)} << 32 | raw(leaf.expr); };
    fuel_.within(kMost, [&] {
        const std::uint64_t before = fuel_.left();
        std::vector<NodeId> cold;
        for (const NodeId n : machine.components().ids()) {
            const AnalysedNode& c = machine.component(n);
            if (c.kind != NodeKind::leaf || warm_leaves_.find(key(c)) || !pool.emptiness.is_nonempty(c.expr)) continue;
            if (pool[c.expr].op == Op::strings || pool[after_byte(pool, '"', c.expr)].op == Op::strings) continue;
            cold.push_back(n);
        }
        for (const bool quoted : {true, false})
            for (const NodeId n : cold) {
                const AnalysedNode& c = machine.component(n);
                const ExprId state = quoted ? pool.dfa.derivative(c.expr, '"') : c.expr;
                if (state <= kEmpty) continue;
                if (before - fuel_.left() > kEnough || bytes() > budget_) return;
                results_.run(machine, kVocabularyTrie, Config::at_leaf(n, state, ReadTexts::kUnknown, kBottom));
            }
        for (const NodeId n : cold) warm_leaves_.get(key(machine.component(n)));
    });
    recount_bytes(*current_cache_);
}

void MaskEngine::warm_up(Machine& machine, AutomatonId automaton, std::uint64_t work) {
    begin_use(automaton);
    builder_.begin(*current_cache_);
    const std::uint64_t before = fuel_.left();
    const auto is_over = [&] { return before - fuel_.left() >= work || bytes() > budget_; };
    Configs first;
    machine.start(first);
    for (const Config& c : first)
        if (!is_over()) mask(machine, c);
    std::vector<Config> leaves;
    IdVector<NodeId, std::vector<Config>> rests(
        machine.components().size());  // by component: the rests of sequences that begin where it ends
    for (const NodeId n : machine.components().ids()) {
        const AnalysedNode& c = machine.component(n);
        if (c.kind == NodeKind::leaf && machine.pool().emptiness.is_nonempty(c.expr))
            leaves.push_back(Config::at_leaf(n, c.expr, ReadTexts::kUnknown, kBottom));
        if (c.kind != NodeKind::sequence || !machine.shares_stacks()) continue;
        for (std::uint32_t i = 1; i < c.parts.size(); ++i) {
            const Config& rest = rests[c.parts[i - 1]].emplace_back(Config{n, NodeState{i}, {}, kBottom});
            if (!is_over()) builder_.call(machine, kVocabularyTrie, rest, 0);
        }
    }
    std::unordered_set<std::uint64_t> seen;
    builder_.begin(*current_cache_);
    for (std::size_t i = 0; i < leaves.size() && !is_over(); ++i) {  // breadth-first from the starts of the leaves
        fuel_.spend(kStateWork);
        const Config at = leaves[i];
        if (at.expr() == kEmpty || !seen.insert(std::uint64_t{raw(at.node)} << 32 | raw(at.expr())).second) continue;
        const WalkResult made = results_.run(machine, kVocabularyTrie, at);
        if (made.suffix_trie != kNoTrie)
            for (const Config& rest : rests[at.node])
                if (!is_over()) builder_.call(machine, made.suffix_trie, rest, 0);
        const ByteSet live = machine.pool().dfa.first(at.expr());
        for (int b = live.from(0); b >= 0; b = b < 255 ? live.from(static_cast<unsigned>(b) + 1) : -1) {
            const ExprId next = machine.pool().dfa.derivative(at.expr(), static_cast<std::uint8_t>(b));
            if (next != kNone && (leaves.empty() || leaves.back().expr() != next))
                leaves.push_back(Config::at_leaf(at.node, next, ReadTexts::kUnknown, kBottom));
        }
    }
    recount_bytes(*current_cache_);
}

}  // namespace guideway
