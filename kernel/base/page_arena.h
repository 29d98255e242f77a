// Memory for tables that grow: pieces of chunks of 2 MB that the system should map as one page each. Small and large pieces
// are allocated separately. The tables are read at random places, so large pages save misses of the TLB (decision 7).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace guideway {

// Of any size, from 1 KB on at the beginning of a cache line; its content is not set. From any thread.
void* take_piece(std::size_t bytes);
void give_piece(void* piece, std::size_t bytes) noexcept;  // of the same size

// An array of values, which stays where it is; `Piece()` is none. `const` as a pointer is: the values may be changed.
template <class T>
class Piece {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignof(std::max_align_t));

public:
    Piece() = default;
    explicit Piece(std::size_t count) : values_(static_cast<T*>(take_piece(count * sizeof(T)))), count_(count) {
        std::uninitialized_value_construct_n(values_, count);
    }
    explicit Piece(std::span<const T> values) : values_(static_cast<T*>(take_piece(values.size_bytes()))), count_(values.size()) {
        std::uninitialized_copy(values.begin(), values.end(), values_);
    }
    Piece(Piece&& other) noexcept : values_(std::exchange(other.values_, nullptr)), count_(std::exchange(other.count_, 0)) {}
    Piece& operator=(Piece&& other) noexcept {
        std::swap(values_, other.values_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~Piece() {
        if (values_) give_piece(values_, count_ * sizeof(T));
    }

    T& operator[](std::size_t i) const { return values_[i]; }
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

// For vectors.
template <class T>
struct PieceAllocator {
    using value_type = T;
    PieceAllocator() = default;
    template <class U>
    PieceAllocator(const PieceAllocator<U>&) noexcept {}
    T* allocate(std::size_t count) { return static_cast<T*>(take_piece(count * sizeof(T))); }
    void deallocate(T* piece, std::size_t count) noexcept { give_piece(piece, count * sizeof(T)); }
    friend bool operator==(const PieceAllocator&, const PieceAllocator&) { return true; }
};
template <class T>
using PieceVector = std::vector<T, PieceAllocator<T>>;

}  // namespace guideway
