// Where a matcher has been: its positions, shared by the matchers that were forked from it.
//
// Positions stand in pieces, one behind the other, each as the number of its configurations and these: a token takes
// little more than what it has to say. A piece that others hold too is not written to: who goes on from it begins another
// behind it. Each piece also points far back, as in Myers, "An applicative random-access stack" (1983), so that giving n
// tokens back takes about log n steps, and those within a piece. Pieces are counted; the last reference frees a chain
// piece by piece, without recursion.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "guideway/machine.h"

namespace guideway {

class History {
public:
    History() = default;
    explicit History(const Configs& first) { push(first); }
    History(const History& other) : last_(other.last_), at_(other.at_), position_(other.position_) {
        if (last_) last_->count.fetch_add(1, std::memory_order_relaxed);
    }
    History(History&& other) noexcept : last_(std::exchange(other.last_, nullptr)), at_(other.at_), position_(other.position_) {}
    History& operator=(History other) noexcept {
        std::swap(last_, other.last_);
        std::swap(at_, other.at_);
        std::swap(position_, other.position_);
        return *this;
    }
    ~History() { release(last_); }

    std::span<const Config> now() const { return {last_->slots() + at_ + 1, last_->slots()[at_].node}; }
    std::size_t position() const { return position_; }
    void push(const Configs& configs) {
        const std::size_t needed = configs.size() + 1;
        std::size_t end = last_ ? at_ + 1 + last_->slots()[at_].node : 0;
        if (last_) ++position_;
        const bool shared = last_ && last_->count.load(std::memory_order_acquire) != 1;
        if (!last_ || shared || last_->room - end < needed) {
            const std::size_t more = last_ && !shared ? std::min<std::size_t>(2 * last_->room, kMostSlots) : kFewestSlots;
            last_ = Piece::make(last_, position_, std::max(needed, more));
            end = 0;
        }
        at_ = static_cast<std::uint32_t>(end);
        last_->slots()[at_].node = static_cast<std::uint32_t>(configs.size());
        std::copy(configs.begin(), configs.end(), last_->slots() + at_ + 1);
    }
    // To an earlier position.
    void back_to(std::size_t position) {
        Piece* piece = last_;
        while (piece->first > position) piece = piece->far->first > position ? piece->far : piece->before;
        piece->count.fetch_add(1, std::memory_order_relaxed);
        release(std::exchange(last_, piece));
        at_ = 0;
        for (std::size_t i = piece->first; i < position; ++i) at_ += 1 + piece->slots()[at_].node;
        position_ = position;
    }

private:
    static constexpr std::size_t kFewestSlots = 8, kMostSlots = 256;

    struct Piece {
        std::atomic<std::uint32_t> count{1};
        std::uint32_t room;      // slots, which stand right behind: of each position its size, as a node, and its configurations
        std::size_t first;       // position
        std::size_t depth;       // pieces before it
        Piece *before, *far;     // before is counted, far is an ancestor that before keeps

        Config* slots() { return reinterpret_cast<Config*>(this + 1); }
        static Piece* make(Piece* before, std::size_t first, std::size_t room) {
            void* place = ::operator new(sizeof(Piece) + room * sizeof(Config));
            Piece* made = new (place) Piece{{1}, static_cast<std::uint32_t>(room), first, before ? before->depth + 1 : 0, before, nullptr};
            Piece* step = before ? before->far : made;
            made->far = !before ? made : before->depth - step->depth == step->depth - step->far->depth ? step->far : before;
            std::uninitialized_default_construct_n(made->slots(), room);
            return made;
        }
    };
    static void release(Piece* piece) {
        while (piece && piece->count.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            Piece* before = piece->before;
            piece->~Piece();
            ::operator delete(piece);
            piece = before;
        }
    }

    Piece* last_ = nullptr;
    std::uint32_t at_ = 0;      // slot where the position begins
    std::size_t position_ = 0;
};

}  // namespace guideway
