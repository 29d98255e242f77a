// A list of the size of one pointer: a node of a grammar has many lists, most of them empty, and there are many nodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace guideway {

template <class T>
class List {
public:
    List() = default;
    List(std::initializer_list<T> all) : List() {
        reserve(all.size());
        for (const T& one : all) push_back(one);
    }
    List(const List& other) : List() {  // the delegated constructor is complete: after an exception, the destructor runs
        reserve(other.size());
        for (const T& one : other) push_back(one);
    }
    List(List&& other) noexcept : items_(std::exchange(other.items_, nullptr)) {}
    List& operator=(List other) noexcept {
        std::swap(items_, other.items_);
        return *this;
    }
    ~List() { release(items_); }

    std::size_t size() const { return items_ ? head(items_)->size : 0; }
    bool empty() const { return size() == 0; }
    T* begin() { return items_; }
    T* end() { return items_ + size(); }
    const T* begin() const { return items_; }
    const T* end() const { return items_ + size(); }
    T& operator[](std::size_t i) { return items_[i]; }
    const T& operator[](std::size_t i) const { return items_[i]; }
    T& back() { return items_[size() - 1]; }
    const T& back() const { return items_[size() - 1]; }

    void push_back(T added) {
        const std::size_t before = size();
        if (!items_ || before == head(items_)->room) reserve(std::max<std::size_t>(2 * before, 1));
        new (items_ + before) T(std::move(added));
        ++head(items_)->size;
    }
    void assign(std::size_t count, const T each) {
        *this = {};
        reserve(count);
        while (size() < count) push_back(each);
    }
    void reserve(std::size_t room) {
        static_assert(std::is_nothrow_move_constructible_v<T>);
        if (room <= (items_ ? head(items_)->room : 0)) return;
        void* const place = ::operator new(sizeof(Head) + room * sizeof(T));
        const std::size_t count = size();
        new (place) Head{static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(room)};
        T* const made = reinterpret_cast<T*>(static_cast<Head*>(place) + 1);
        std::uninitialized_move_n(items_, count, made);
        release(std::exchange(items_, made));
    }

private:
    struct Head {  // stored before the items
        std::uint32_t size, room;
    };
    static_assert(alignof(T) <= alignof(std::uint64_t) && sizeof(Head) == sizeof(std::uint64_t));

    static Head* head(T* items) { return reinterpret_cast<Head*>(items) - 1; }
    static void release(T* items) noexcept {
        if (!items) return;
        std::destroy_n(items, head(items)->size);
        ::operator delete(head(items));
    }

    T* items_ = nullptr;
};

}  // namespace guideway
