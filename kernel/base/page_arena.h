// Memory for growing tables: pieces of chunks of 2 MB, for which the system is asked to use one huge page each. Small and large
// pieces are allocated separately. The tables have random access, so huge pages avoid TLB misses (decision 7).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "guideway/base/dcheck.h"

namespace guideway {

// Allocates uninitialized memory of any size; from 1 KB on, it is aligned to a cache line. Thread-safe.
void* allocate_block(std::size_t bytes);
void free_block(void* piece, std::size_t bytes) noexcept;  // `bytes`: as at allocation

// An array of values with a fixed address; `ArenaBlock()` has none. As with a pointer, the values of a `const` one can be changed.
template <class T>
class ArenaBlock {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignof(std::max_align_t));

public:
    ArenaBlock() = default;
    explicit ArenaBlock(std::size_t count) : values_(static_cast<T*>(allocate_block(count * sizeof(T)))), count_(count) {
        std::uninitialized_value_construct_n(values_, count);
    }
    explicit ArenaBlock(std::span<const T> values) : values_(static_cast<T*>(allocate_block(values.size_bytes()))), count_(values.size()) {
        std::uninitialized_copy(values.begin(), values.end(), values_);
    }
    ArenaBlock(ArenaBlock&& other) noexcept : values_(std::exchange(other.values_, nullptr)), count_(std::exchange(other.count_, 0)) {}
    ArenaBlock& operator=(ArenaBlock&& other) noexcept {
        std::swap(values_, other.values_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~ArenaBlock() {
        if (values_) free_block(values_, count_ * sizeof(T));
    }

    T& operator[](std::size_t i) const {
        GUIDEWAY_DCHECK(i < count_);
        return values_[i];
    }
    T* data() const { return values_; }
    T* begin() const { return values_; }
    T* end() const { return values_ + count_; }
    std::size_t size() const { return count_; }
    bool empty() const { return count_ == 0; }
    explicit operator bool() const { return values_ != nullptr; }

private:
    T* values_ = nullptr;
    std::size_t count_ = 0;
};

// An allocator for vectors.
template <class T>
struct ArenaAllocator {
    using value_type = T;
    ArenaAllocator() = default;
    template <class U>
    ArenaAllocator(const ArenaAllocator<U>&) noexcept {}
    T* allocate(std::size_t count) { return static_cast<T*>(allocate_block(count * sizeof(T))); }
    void deallocate(T* piece, std::size_t count) noexcept { free_block(piece, count * sizeof(T)); }
    friend bool operator==(const ArenaAllocator&, const ArenaAllocator&) { return true; }
};
template <class T>
using ArenaVector = std::vector<T, ArenaAllocator<T>>;

}  // namespace guideway
