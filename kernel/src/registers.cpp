#include "guideway/registers.h"

#include <algorithm>

namespace guideway {

std::uint32_t Records::intern(const std::vector<std::uint32_t>& record) {
    if (std::all_of(record.begin(), record.end(), [](std::uint32_t w) { return w == 0; })) return 0;
    std::uint64_t h = record.size();
    for (std::uint32_t w : record) h = mix(h, w);
    auto [first, last] = ids_.equal_range(h);
    for (; first != last; ++first) {
        const std::size_t begin = begin_[first->second], end = begin_[first->second + 1];
        if (end - begin == record.size() && std::equal(record.begin(), record.end(), words_.begin() + static_cast<std::ptrdiff_t>(begin)))
            return first->second;
    }
    const auto id = static_cast<std::uint32_t>(begin_.size() - 1);
    words_.insert(words_.end(), record.begin(), record.end());
    begin_.push_back(words_.size());
    ids_.emplace(h, id);
    return id;
}

}  // namespace guideway
