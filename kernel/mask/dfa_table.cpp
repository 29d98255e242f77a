#include "guideway/mask/dfa_table.h"

#include <algorithm>
#include <bit>

#include "guideway/base/dcheck.h"
#include "guideway/mask/self_loops.h"

namespace guideway {

namespace {

constexpr unsigned kFewBytes = 12;       // minimum number of ASCII bytes of the class of a sequence
constexpr std::uint32_t kMaxChain = 24;  // maximum number of steps of a sequence
constexpr std::uint64_t kStateWork = 200;

// The state that most of the bytes lead to, and these bytes.
std::pair<ExprId, ByteSet> most_of(ExprPool& pool, ExprId state, const ByteSet& bytes) {
    std::vector<std::pair<ExprId, ByteSet>> ways;
    pool.dfa.for_each_derivative(state, bytes, [&](const ByteSet& some, ExprId to) {
        auto at = std::find_if(ways.begin(), ways.end(), [&](const auto& way) { return way.first == to; });
        if (at == ways.end()) at = ways.insert(at, {to, {}});
        at->second |= some;
    });
    const auto most =
        std::max_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    return most == ways.end() ? std::pair{kNone, ByteSet{}} : *most;
}

}  // namespace

const SelfLoops* LoopMemo::find(ExprPool& pool, const SubtreeAlphabets& subtrees, ExprId state, bool exact) {
    if (!pool[state].unbounded) return nullptr;
    const std::uint64_t key = std::uint64_t{raw(state)} << 1 | exact;
    if (const SelfLoops** known = found_.find(key)) return *known;
    // A summand may be an intersection without texts, which also returns to itself. If a short search cannot decide, the state
    // counts as empty.
    bool lives = false;
    if (!pool.emptiness.with_short_searches([&] { lives = pool.emptiness.is_nonempty(state); }) || !lives) return found_.add(key, nullptr);
    SelfLoops made = loops_of(subtrees, pool, state, exact);
    return found_.add(key, made.any() ? &kept_.emplace_back(std::move(made)) : nullptr);
}

const std::vector<std::uint64_t>& LoopMemo::blocks_of(ExprPool& pool, const SubtreeAlphabets& subtrees, ExprId head) {
    if (const auto known = heads_.find(head); known != heads_.end()) return known->second;
    return heads_[head] = blocks_to(subtrees, pool, head, [](ExprId to) { return to == kEmpty; });
}

// Sets the blocks by which each state leads to the next one, and the last state to itself if the sequence ends in a loop. None if
// the last state has no loop and reads characters beyond ASCII.
void LoopMemo::add_blocks(ExprPool& pool, const SubtreeAlphabets& subtrees, const std::vector<ExprId>& states, ClassSequence& made) {
    std::vector<std::uint64_t>& blocks = made.loops.blocks;
    blocks = subtrees.no_blocks();
    const bool loops = made.characters == kInfinite;
    if (!pool.dfa.first(states[0]).meets(kBeyondAscii) || (!loops && pool.dfa.first(states.back()).meets(kBeyondAscii))) return;
    std::vector<const std::vector<std::uint64_t>*> all;
    ByteSet taken = kBeyondAscii;
    taken.words[0] = made.loops.ascii[0];
    taken.words[1] = made.loops.ascii[1];
    const auto byte = static_cast<std::uint8_t>(taken.from(0));  // any byte of the class: all lead to the same states
    // A character that the head matches leads to the same state as `byte` if the head matches `byte` too, and if nothing after an
    // optional head reads either of them.
    for (std::size_t i = 0; i + 1 < states.size(); ++i) {
        const ExprId head = head_of(pool, states[i]);
        if (head == kNone || pool.dfa.derivative(head, byte) != kEmpty || !pool.dfa.goes_by_head(states[i], taken)) return;
        all.push_back(&blocks_of(pool, subtrees, head));
    }
    if (loops) {
        const SelfLoops* end = find(pool, subtrees, states.back(), true);
        if (!end) return;
        all.push_back(&end->blocks);
    }
    blocks = *all[0];
    for (const auto* some : all)
        for (std::size_t k = 0; k < blocks.size(); ++k) blocks[k] &= (*some)[k];
}

const LoopMemo::ClassSequence* LoopMemo::class_sequence(ExprPool& pool, const SubtreeAlphabets& subtrees, ExprId state) {
    if (pool[state].boolean) return nullptr;  // a step may need a search
    if (const ClassSequence** known = found_class_sequences_.find(state)) return *known;
    const auto made = find_class_sequence(pool, subtrees, state);
    return found_class_sequences_.add(state, made ? &class_sequences_.emplace_back(*made) : nullptr);
}

std::optional<LoopMemo::ClassSequence> LoopMemo::find_class_sequence(ExprPool& pool, const SubtreeAlphabets& subtrees, ExprId state) {
    ClassSequence made;
    std::vector<ExprId> states{state};
    ByteSet bytes = pool.dfa.first(state);
    bytes &= ByteSet::range(0, 0x7f);
    for (std::uint32_t characters = 0; bytes.size() >= kFewBytes && !made.characters; ++characters) {
        const ExprId at = states.back();
        pool.fuel().spend(kStateWork);
        made.nullable = made.nullable || pool[at].nullable;
        ByteSet taken = pool.dfa.first(at);
        taken &= bytes;
        if (taken.size() * 2 <= bytes.size()) {
            taken.each([&](std::uint8_t b) { bytes.erase(b); });
            made.characters = characters;
            break;
        }
        const auto [to, some] = most_of(pool, at, bytes);
        if (some.size() * 2 < bytes.size() || characters == kMaxChain) return std::nullopt;
        bytes = some;
        if (to == at) made.characters = kInfinite;
        else states.push_back(to);
    }
    if (!made.characters || bytes.size() < kFewBytes) return std::nullopt;
    made.loops.ascii[0] = bytes.words[0];
    made.loops.ascii[1] = bytes.words[1];
    add_blocks(pool, subtrees, states, made);
    return made;
}

void LoopMemo::clear() {
    found_.clear();
    kept_.clear();
    found_class_sequences_.clear();
    class_sequences_.clear();
    heads_.clear();
}

std::uint16_t DfaTable::number(const ExprPool& pool, ExprId expr) {
    if (slots_.empty()) slots_.assign(std::bit_ceil(4 * most_), kUnknown);
    std::size_t at = (raw(expr) * 0x9e3779b1u >> 8) & (slots_.size() - 1);
    for (; slots_[at] != kUnknown; at = (at + 1) & (slots_.size() - 1))
        if (states_[slots_[at]].expr == expr) return slots_[at];
    if (states_.empty()) {  // reserved once, so that references stay valid
        states_.reserve(most_);
        steps_.reserve(most_);
    }
    GUIDEWAY_DCHECK(states_.size() < states_.capacity() && steps_.size() < steps_.capacity());
    const auto made = static_cast<std::uint16_t>(states_.size());
    slots_[at] = made;
    State& state = states_.emplace_back();
    state.expr = expr;
    state.nullable = pool[expr].nullable;
    steps_.emplace_back().fill(kUnknown);
    return made;
}

std::uint16_t DfaTable::after_continuation(ExprPool& pool, std::uint16_t number) {
    std::uint16_t& known = states_[number].after_continuation;
    if (known != kUnknown) return known;
    const auto [to, bytes] = most_of(pool, states_[number].expr, kContinuation);
    return known = bytes.size() < kContinuation.size() || full() ? kDead : this->number(pool, to);
}

void DfaTable::begin() {
    if (full()) drop();
    if (stable_sets_ && stable_sets_->full()) clear();
    if (stable_sets_) stable_sets_->begin();
}

void DfaTable::clear() {
    drop();
    stable_sets_.reset();
}

void DfaTable::drop() {
    states_.clear();
    steps_.clear();
    slots_.clear();
}

}  // namespace guideway
