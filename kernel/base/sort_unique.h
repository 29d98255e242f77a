// Vectors as sorted sets.
#pragma once

#include <algorithm>
#include <cstddef>

namespace guideway {

// Sorts the items from position `first` on, and removes repeated ones.
template <class Vector>
void sort_unique(Vector& all, std::size_t first = 0) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, all.end());
    all.erase(std::unique(begin, all.end()), all.end());
}

}  // namespace guideway
