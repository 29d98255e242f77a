// Where a matcher has been: a chain of positions, newest first, shared by the matchers that were forked from it.
//
// Taking a token adds a link, forking copies a pointer. Each link also points far back, as in Myers, "An applicative
// random-access stack" (1983), so that giving n tokens back takes about log n steps. Links are counted; the last
// reference frees a chain link by link, without recursion.
#pragma once

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
    explicit History(const Configs& first) : last_(Link::make(nullptr, first)) {}
    History(const History& other) : last_(other.last_) {
        if (last_) last_->count.fetch_add(1, std::memory_order_relaxed);
    }
    History(History&& other) noexcept : last_(std::exchange(other.last_, nullptr)) {}
    History& operator=(History other) noexcept {
        std::swap(last_, other.last_);
        return *this;
    }
    ~History() { release(last_); }

    std::span<const Config> now() const { return {last_->configs(), last_->size}; }
    std::size_t position() const { return last_->position; }
    void push(const Configs& configs) { last_ = Link::make(last_, configs); }
    // To an earlier position.
    void back_to(std::size_t position) {
        Link* at = last_;
        while (at->position > position) at = at->far->position >= position ? at->far : at->before;
        at->count.fetch_add(1, std::memory_order_relaxed);
        release(std::exchange(last_, at));
    }

private:
    struct Link {
        std::atomic<std::uint32_t> count{1};
        std::uint32_t size;      // of the configurations, which stand right behind
        std::size_t position;
        Link *before, *far;      // before is counted, far is an ancestor that before keeps

        const Config* configs() const { return reinterpret_cast<const Config*>(this + 1); }
        static Link* make(Link* before, const Configs& configs) {
            void* place = ::operator new(sizeof(Link) + configs.size() * sizeof(Config));
            Link* made = new (place) Link{{1}, static_cast<std::uint32_t>(configs.size()), before ? before->position + 1 : 0, before, nullptr};
            Link* step = before ? before->far : made;
            made->far = !before ? made : before->position - step->position == step->position - step->far->position ? step->far : before;
            std::uninitialized_copy(configs.begin(), configs.end(), reinterpret_cast<Config*>(made + 1));
            return made;
        }
    };
    static void release(Link* link) {
        while (link && link->count.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            Link* before = link->before;
            link->~Link();
            ::operator delete(link);
            link = before;
        }
    }

    Link* last_ = nullptr;
};

}  // namespace guideway
