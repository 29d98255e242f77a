#include "guideway/grammar/counters.h"

#include <algorithm>

namespace guideway {

Register CounterRecords::intern(const std::vector<std::uint32_t>& record) {
    if (std::all_of(record.begin(), record.end(), [](std::uint32_t w) { return w == 0; })) return {};
    const auto hash = [](std::span<const std::uint32_t> words) {
        std::uint64_t made = words.size();
        for (const std::uint32_t w : words) made = mix(made, w);
        return made;
    };
    const std::uint64_t wanted = hash(record);
    const auto same = [&](Register id) { return std::ranges::equal(words(id), record); };
    const auto hash_of = [&](Register id) { return hash(words(id)); };
    if (const auto known = index_.find(wanted, begin_.size() - 1, hash_of, same)) return *known;
    const Register id{static_cast<std::uint32_t>(begin_.size() - 1)};
    words_.resize(begin_.back());  // removes words of a call that failed at an allocation
    words_.insert(words_.end(), record.begin(), record.end());
    begin_.push_back(words_.size());
    index_.add(wanted);
    return id;
}

}  // namespace guideway
