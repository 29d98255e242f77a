// A vector in blocks that only grows: its elements never move.
#pragma once

#include <cstddef>
#include <vector>

#include "guideway/base/dcheck.h"
#include "guideway/base/page_arena.h"

namespace guideway {

// kBits: logarithm of the number of entries in a block. Id: the type of their numbers.
template <class T, unsigned kBits = 8, class Id = std::size_t>
class SegmentedVector {
public:
    T& operator[](Id id) { return at(static_cast<std::size_t>(id)); }
    const T& operator[](Id id) const { return at(static_cast<std::size_t>(id)); }
    void push_back(const T& added) {
        if ((size_ & kMask) == 0 && size_ >> kBits == blocks_.size()) blocks_.push_back(ArenaBlock<T>(std::size_t{1} << kBits));
        blocks_[size_ >> kBits][size_ & kMask] = added;
        ++size_;
    }
    template <class Range>
    void append(const Range& added) {
        for (const T& one : added) push_back(one);
    }
    std::size_t size() const { return size_; }

private:
    static constexpr std::size_t kMask = (std::size_t{1} << kBits) - 1;

    T& at(std::size_t i) const {
        GUIDEWAY_DCHECK(i < size_);
        return blocks_[i >> kBits][i & kMask];
    }

    std::vector<ArenaBlock<T>> blocks_;
    std::size_t size_ = 0;
};

}  // namespace guideway
