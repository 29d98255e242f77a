// The readings of a value of an object or array: a list, which needs no separate memory if it has one element, as most have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace guideway {

enum class NodeId : std::uint32_t {};  // a node of a grammar

struct Reading {  // a grammar of the value: a node, and the demands or counters that values of this node count for
    std::uint64_t marks = 0;
    NodeId node{};
};

class Readings {
public:
    Readings() = default;
    Readings(std::initializer_list<Reading> all) {
        for (const Reading& r : all) push_back(r);
    }
    Readings(const Readings& other) : Readings() {
        for (const Reading& r : other) push_back(r);
    }
    Readings(Readings&& other) noexcept
        : size_(std::exchange(other.size_, 0)), one_(other.one_), many_(std::exchange(other.many_, nullptr)) {}
    Readings& operator=(Readings other) noexcept {
        std::swap(size_, other.size_);
        std::swap(one_, other.one_);
        std::swap(many_, other.many_);
        return *this;
    }
    ~Readings() { delete[] many_; }

    // Room doubles whenever the size is a power of two.
    void push_back(const Reading& added) {
        if (size_ == 0) one_ = added;
        else {
            if ((size_ & (size_ - 1)) == 0) {
                Reading* more = new Reading[std::size_t{2} * size_];
                std::copy(begin(), end(), more);
                delete[] std::exchange(many_, more);
            }
            many_[size_] = added;
        }
        ++size_;
    }
    bool empty() const { return size_ == 0; }
    std::uint32_t size() const { return size_; }
    Reading* begin() { return many_ ? many_ : &one_; }
    Reading* end() { return begin() + size_; }
    const Reading* begin() const { return many_ ? many_ : &one_; }
    const Reading* end() const { return begin() + size_; }

private:
    std::uint32_t size_ = 0;
    Reading one_;
    Reading* many_ = nullptr;  // all of them, if there are several
};

}  // namespace guideway
