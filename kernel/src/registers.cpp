#include "guideway/registers.h"

#include <algorithm>

namespace guideway {

std::uint32_t Records::intern(const std::vector<std::uint32_t>& record) {
    if (std::all_of(record.begin(), record.end(), [](std::uint32_t w) { return w == 0; })) return 0;
    std::uint64_t h = record.size();
    for (std::uint32_t w : record) h = mix(h, w);
    const std::uint32_t known = ids_.find(h, [&](std::uint32_t id) {
        const std::size_t begin = begin_[id], end = begin_[id + 1];
        return end - begin == record.size() && std::equal(record.begin(), record.end(), words_.begin() + static_cast<std::ptrdiff_t>(begin));
    });
    if (known != IdTable::kMissing) return known;
    const auto id = static_cast<std::uint32_t>(begin_.size() - 1);
    words_.insert(words_.end(), record.begin(), record.end());
    begin_.push_back(words_.size());
    ids_.add(h, id);
    return id;
}

}  // namespace guideway
