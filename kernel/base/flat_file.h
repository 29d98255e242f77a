// The format of files: arrays of plain values in a block of words, each after its length. The reader checks each length against
// the rest of the block.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "guideway/base/error.h"

namespace guideway {

class FlatWriter {
public:
    template <class Array>
    void put(const Array& values) {
        static_assert(std::is_trivially_copyable_v<typename Array::value_type>);
        words_.push_back(values.size());
        const std::size_t at = words_.size(), bytes = values.size() * sizeof values[0];
        words_.resize(at + (bytes + 7) / 8);
        if (bytes && bytes <= (words_.size() - at) * 8)
            std::memcpy(words_.data() + at, values.data(), bytes);  // the second condition is always true: without it, the compiler warns
    }
    std::vector<std::uint64_t> take() { return std::move(words_); }

private:
    std::vector<std::uint64_t> words_;
};

class FlatReader {
public:
    explicit FlatReader(std::span<const std::uint64_t> words) : words_(words) {}

    // A view of the next array. Throws Error(argument) if it does not end inside the block.
    template <class T>
    std::span<const T> view() {
        static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8);
        if (words_.empty() || words_[0] > (words_.size() - 1) * 8 / sizeof(T))
            throw Error(ErrorKind::argument, "a file that ends too early");
        const std::size_t count = words_[0], used = (count * sizeof(T) + 7) / 8;
        const std::span<const T> found{reinterpret_cast<const T*>(words_.data() + 1), count};
        words_ = words_.subspan(1 + used);
        return found;
    }
    bool done() const { return words_.empty(); }

private:
    std::span<const std::uint64_t> words_;
};

}  // namespace guideway
