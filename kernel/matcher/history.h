// The history of a matcher: the state set of each position, and the token before it. Forks of a matcher share the chunks of
// their common history.
//
// A history is a chain of chunks of slots, with a reference from each chunk to the one before it, and a position in the last
// chunk. `back_to` (rollback) only changes the position and drops the chunks after it: all earlier state sets are still
// there, and nothing is computed. A later `push` overwrites the slots after the position. It writes only to a chunk that no
// other chunk or history refers to; else it begins a new chunk. Each chunk also has a pointer to a chunk far back, as in Myers, "An
// applicative random-access stack" (1983), so that a chunk is found in a number of steps logarithmic in the distance. Chunks
// have reference counts; the last reference frees a chain iteratively. State sets have a fixed address while their
// automaton exists (state_sets.h). The tokens let another automaton of the same program repeat the history
// (`Matcher::move_apart`).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "guideway/base/dcheck.h"
#include "guideway/grammar/state_sets.h"

namespace guideway {

class History {
public:
    History() = default;
    explicit History(const StateSet& first) { push(first, 0); }
    History(const History& other) : last_(other.last_), at_(other.at_) {
        if (last_) last_->count.fetch_add(1, std::memory_order_relaxed);
    }
    History(History&& other) noexcept : last_(std::exchange(other.last_, nullptr)), at_(other.at_) {}
    History& operator=(History other) noexcept {
        std::swap(last_, other.last_);
        std::swap(at_, other.at_);
        return *this;
    }
    ~History() { release(last_); }

    const StateSet& now() const { return *last_->slots()[at_].state_set; }
    std::size_t position() const { return last_->first + at_; }
    void push(const StateSet& state_set, std::uint32_t token) {
        const std::size_t position = last_ ? this->position() + 1 : 0;
        const bool shared = last_ && last_->count.load(std::memory_order_acquire) != 1;
        if (last_ && !shared && at_ + 1 < last_->room) ++at_;
        else {
            last_ = Chunk::make(last_, position, last_ && !shared ? std::min(2 * last_->room, kMostSlots) : kFewestSlots);
            at_ = 0;
        }
        last_->slots()[at_] = {&state_set, token};
    }
    // The tokens from the first state set to the current one.
    std::vector<std::uint32_t> tokens() const {
        std::vector<std::uint32_t> made(position());
        Chunk* chunk = last_;
        for (std::size_t at = position(); at > 0; --at) {
            while (chunk->first > at) chunk = chunk->before;
            made[at - 1] = chunk->slots()[at - chunk->first].token;
        }
        return made;
    }
    // Returns to this position, which must not be later than the current one.
    void back_to(std::size_t position) {
        GUIDEWAY_DCHECK(position <= this->position());
        Chunk* chunk = last_;
        while (chunk->first > position) chunk = chunk->far->first > position ? chunk->far : chunk->before;
        chunk->count.fetch_add(1, std::memory_order_relaxed);
        release(std::exchange(last_, chunk));
        at_ = static_cast<std::uint32_t>(position - chunk->first);
    }

private:
    static constexpr std::uint32_t kFewestSlots = 8, kMostSlots = 256;

    struct Slot {
        const StateSet* state_set;
        std::uint32_t token;
    };
    struct Chunk {
        std::atomic<std::uint32_t> count{1};
        std::uint32_t room;   // number of slots, which are stored directly after the chunk
        std::size_t first;    // position of the first slot
        std::size_t depth;    // number of chunks before it
        Chunk *before, *far;  // `before` is a counted reference; `far` is an earlier chunk in the same chain

        Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
        static Chunk* make(Chunk* before, std::size_t first, std::uint32_t room) {
            void* place = ::operator new(sizeof(Chunk) + room * sizeof(Slot));
            Chunk* made = new (place) Chunk{{1}, room, first, before ? before->depth + 1 : 0, before, nullptr};
            Chunk* step = before ? before->far : made;
            made->far = !before ? made : before->depth - step->depth == step->depth - step->far->depth ? step->far : before;
            std::uninitialized_default_construct_n(made->slots(), room);
            return made;
        }
    };
    static void release(Chunk* chunk) {
        while (chunk && chunk->count.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            Chunk* before = chunk->before;
            chunk->~Chunk();
            ::operator delete(chunk);
            chunk = before;
        }
    }

    Chunk* last_ = nullptr;
    std::uint32_t at_ = 0;  // slot of the position
};

}  // namespace guideway
