// Ids by hash, for things that stand in a vector of their own: open addressing, no allocation per entry. What is in it
// stays in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace guideway {

class IdTable {
public:
    static constexpr std::uint32_t kMissing = 0xffffffff;

    // The id added under the hash for which `same(id)` holds.
    template <class Same>
    std::uint32_t find(std::uint64_t hash, Same&& same) const {
        if (slots_.empty()) return kMissing;
        const auto tag = static_cast<std::uint32_t>(hash);
        for (std::size_t at = tag & mask_; slots_[at].id != kMissing; at = (at + 1) & mask_)
            if (slots_[at].tag == tag && same(slots_[at].id)) return slots_[at].id;
        return kMissing;
    }

    void add(std::uint64_t hash, std::uint32_t id) {
        if (3 * (count_ + 1) > 2 * slots_.size()) grow();
        ++count_;
        place({static_cast<std::uint32_t>(hash), id});
    }

    std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

private:
    struct Slot {
        std::uint32_t tag = 0, id = kMissing;
    };

    void place(Slot slot) {
        std::size_t at = slot.tag & mask_;
        while (slots_[at].id != kMissing) at = (at + 1) & mask_;
        slots_[at] = slot;
    }

    void grow() {
        const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 16 : 2 * slots_.size()));
        mask_ = slots_.size() - 1;
        for (const Slot& slot : before)
            if (slot.id != kMissing) place(slot);
    }

    std::vector<Slot> slots_;
    std::size_t mask_ = 0, count_ = 0;
};

}  // namespace guideway
