// Ids: enumerations without enumerators, one for each kind of thing, so that ids of different kinds do not convert to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
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

// A vector of items that are numbered by ids.
template <class Id, class T, class Allocator = std::allocator<T>>
class IdVector : public std::vector<T, Allocator> {
    using Base = std::vector<T, Allocator>;

public:
    using Base::Base;
    decltype(auto) operator[](Id id) { return Base::operator[](raw(id)); }
    decltype(auto) operator[](Id id) const { return Base::operator[](raw(id)); }
    Id next() const { return next_id<Id>(*this); }  // of the next item
    auto ids() const {
        return std::views::iota(std::uint32_t{0}, raw(next())) | std::views::transform([](std::uint32_t i) { return Id{i}; });
    }
};

}  // namespace guideway
