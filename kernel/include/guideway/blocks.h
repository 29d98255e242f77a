// A list that only grows, in blocks: what it holds never moves, and nothing is copied while it grows.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace guideway {

template <class T>
class Blocks {
public:
    T& operator[](std::size_t i) { return blocks_[i >> kBits][i & kMask]; }
    const T& operator[](std::size_t i) const { return blocks_[i >> kBits][i & kMask]; }
    void push_back(const T& added) {
        if ((size_ & kMask) == 0 && size_ >> kBits == blocks_.size()) blocks_.push_back(std::make_unique<T[]>(std::size_t{1} << kBits));
        (*this)[size_] = added;
        ++size_;
    }
    std::size_t size() const { return size_; }

private:
    static constexpr unsigned kBits = 8;  // of the number of entries in a block
    static constexpr std::size_t kMask = (std::size_t{1} << kBits) - 1;

    std::vector<std::unique_ptr<T[]>> blocks_;
    std::size_t size_ = 0;
};

}  // namespace guideway
