// Ids: enumerations without enumerators, one for each kind of thing, so that ids of different kinds do not convert to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace guideway {

// The number of an id.
template <class Id>
    requires std::is_enum_v<Id>
constexpr std::uint32_t raw(Id id) {
    return static_cast<std::uint32_t>(id);
}

// The id that the next item of a container gets.
template <class Id, class Container>
Id next_id(const Container& items) {
    return Id{static_cast<std::uint32_t>(items.size())};
}

// Consecutive ids, in rising or falling order.
template <class Id>
class IdRange {
public:
    struct Iterator {
        std::uint32_t number, step;
        Id operator*() const { return Id{number}; }
        Iterator& operator++() {
            number += step;
            return *this;
        }
        bool operator==(const Iterator&) const = default;
    };
    IdRange(std::uint32_t first, std::uint32_t last, std::uint32_t step) : begin_{first, step}, end_{last, step} {}
    Iterator begin() const { return begin_; }
    Iterator end() const { return end_; }

private:
    Iterator begin_, end_;
};

// A vector of items that are numbered by ids.
template <class Id, class T, class Allocator = std::allocator<T>>
class IdVector : public std::vector<T, Allocator> {
    using Base = std::vector<T, Allocator>;

public:
    using Base::Base;
    decltype(auto) operator[](Id id) { return Base::operator[](raw(id)); }
    decltype(auto) operator[](Id id) const { return Base::operator[](raw(id)); }
    Id next() const { return next_id<Id>(*this); }  // of the next item
    IdRange<Id> ids() const { return {0, raw(next()), 1}; }
    IdRange<Id> ids_backwards() const { return {raw(next()) - 1, 0xffffffff, 0xffffffff}; }  // steps of -1
};

}  // namespace guideway
