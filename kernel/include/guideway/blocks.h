// A list that only grows, in blocks: what it holds never moves, and nothing is copied while it grows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "guideway/pieces.h"

namespace guideway {

template <class T, unsigned kBits = 8>  // of the number of entries in a block
class Blocks {
public:
    T& operator[](std::size_t i) { return blocks_[i >> kBits][i & kMask]; }
    const T& operator[](std::size_t i) const { return blocks_[i >> kBits][i & kMask]; }
    void push_back(const T& added) {
        if ((size_ & kMask) == 0 && size_ >> kBits == blocks_.size()) blocks_.push_back(Piece<T>(std::size_t{1} << kBits));
        (*this)[size_] = added;
        ++size_;
    }
    template <class Range>
    void append(const Range& added) {
        for (const T& one : added) push_back(one);
    }
    T& back() { return (*this)[size_ - 1]; }
    std::size_t size() const { return size_; }
    void clear() {
        blocks_.clear();
        size_ = 0;
    }
    // Calls f(entry) for those from `begin` to `end`.
    template <class F>
    void each(std::size_t begin, std::size_t end, F&& f) const {
        while (begin < end) {
            const T* const block = blocks_[begin >> kBits].data();
            const std::size_t last = std::min(end, (begin | kMask) + 1);
            for (; begin < last; ++begin) f(block[begin & kMask]);
        }
    }

private:
    static constexpr std::size_t kMask = (std::size_t{1} << kBits) - 1;

    std::vector<Piece<T>> blocks_;
    std::size_t size_ = 0;
};

}  // namespace guideway
