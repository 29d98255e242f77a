// A hash table of ids, for items in a separate vector: open addressing, without an allocation for each entry. Entries are never
// removed. A large table is rehashed incrementally: each added entry moves a few others, so no single call rehashes all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "guideway/base/page_arena.h"

namespace guideway {

class InternTable {
public:
    static constexpr std::uint32_t kMissing = 0xffffffff;

    // The id added under the hash for which `same(id)` holds.
    template <class Same>
    std::uint32_t find(std::uint64_t hash, Same&& same) const {
        const auto tag = static_cast<std::uint32_t>(hash);
        const std::uint32_t found = now_.find(tag, same);
        return found != kMissing || moved_ == before_.size() ? found : before_.find(tag, same);
    }

    void add(std::uint64_t hash, std::uint32_t id) {
        if (3 * (count_ + 1) > 2 * now_.size()) grow();
        ++count_;
        move_some(kStep);
        prepare();
        now_.place({static_cast<std::uint32_t>(hash), id});
    }

    std::size_t bytes() const { return (now_.size() + before_.size()) * sizeof(Slot) + made_ * kPart * sizeof(Slot); }

private:
    struct Slot {
        std::uint32_t tag = 0, id = kMissing;
    };
    static constexpr unsigned kBits = 12;  // logarithm of the number of slots in a part
    static constexpr std::size_t kPart = std::size_t{1} << kBits;
    static constexpr std::size_t kStep = 4;   // slots moved for each added entry: enough to move all before the next growth
    static constexpr std::size_t kPace = 64;  // added entries for each part of the next table that is allocated in advance

    struct Table {
        std::vector<ArenaBlock<Slot>> parts;  // allocated when it gets its first entry
        std::size_t mask = 0;

        Table() = default;
        explicit Table(std::size_t size) : parts(size < kPart ? 1 : size >> kBits), mask(size - 1) {}
        std::size_t size() const { return parts.empty() ? 0 : mask + 1; }
        const Slot* at(std::size_t i) const { return parts[i >> kBits] ? &parts[i >> kBits][i & (kPart - 1)] : nullptr; }

        void make(ArenaBlock<Slot>& part) { part = ArenaBlock<Slot>(mask < kPart ? mask + 1 : kPart); }

        template <class Same>
        std::uint32_t find(std::uint32_t tag, Same&& same) const {
            if (parts.empty()) return kMissing;
            for (std::size_t i = tag & mask;; i = (i + 1) & mask) {
                const Slot* slot = at(i);
                if (!slot || slot->id == kMissing) return kMissing;
                if (slot->tag == tag && same(slot->id)) return slot->id;
            }
        }

        void place(Slot slot) {
            std::size_t i = slot.tag & mask;
            for (const Slot* known = at(i); known && known->id != kMissing; known = at(i)) i = (i + 1) & mask;
            auto& part = parts[i >> kBits];
            if (!part) make(part);
            part[i & (kPart - 1)] = slot;
        }
    };

    // Moved entries also stay in the old table, since probes for others pass them. After the move, one part of the old table is freed
    // at a time.
    void move_some(std::size_t most) {
        for (; most > 0 && moved_ < before_.size(); --most, ++moved_)
            if (const Slot* slot = before_.at(moved_); slot && slot->id != kMissing) now_.place(*slot);
        if (moved_ < before_.size() || before_.parts.empty()) return;
        before_.parts.pop_back();
        moved_ = before_.size();
    }

    // Allocates parts of the next table in advance, so that no single call has to allocate all of them.
    void prepare() {
        if (now_.size() < kPart) return;
        const std::size_t missing = 2 * now_.size() / kPart - made_, left = 2 * now_.size() / 3 - count_;  // parts; entries until it grows
        if (missing * kPace < left) return;
        if (next_.parts.empty()) next_ = Table(2 * now_.size());
        if (made_ < next_.parts.size()) next_.make(next_.parts[made_++]);
    }

    void grow() {
        move_some(before_.size());
        if (next_.parts.empty()) next_ = Table(now_.size() == 0 ? 16 : 2 * now_.size());
        before_ = std::exchange(now_, std::exchange(next_, Table()));
        moved_ = made_ = 0;
        if (before_.size() <= kPart) move_some(before_.size());
    }

    Table now_, before_, next_;
    std::size_t moved_ = 0, made_ = 0, count_ = 0;  // moved_: number of slots of before_; made_: number of parts of next_
};

// An index over a vector of interned items. It can be dropped at any time except between find() and the matching add(). find()
// first adds the items that are missing in it.
template <class Id>
class DroppableIndex {
public:
    // The id of an equal item among the first `count`, if there is one. hash_of(id): the hash of an item.
    template <class Hash, class Same>
    std::optional<Id> find(std::uint64_t hash, std::size_t count, Hash&& hash_of, Same&& same) {
        for (; known_ < count; ++known_) {
            const auto number = static_cast<std::uint32_t>(known_);
            ids_.add(hash_of(Id{number}), number);
        }
        const std::uint32_t found = ids_.find(hash, [&](std::uint32_t number) { return same(Id{number}); });
        return found == InternTable::kMissing ? std::nullopt : std::optional(Id{found});
    }
    // Adds the next item, which the last `find` did not find.
    void add(std::uint64_t hash) {
        ids_.add(hash, static_cast<std::uint32_t>(known_));
        ++known_;
    }
    // Empties the index. A large one is kept: to add all items again would take more than a millisecond in one step.
    void drop_if_small() {
        if (known_ <= kLarge) *this = {};
    }

private:
    static constexpr std::size_t kLarge = std::size_t{1} << 14;

    InternTable ids_;
    std::size_t known_ = 0;  // number of items in the index
};

}  // namespace guideway
