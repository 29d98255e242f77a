// A hash map without an allocation for each entry. Adding entries does not move others; `erase_if` examines all entries.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/base/dcheck.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/page_arena.h"

namespace guideway {

struct NumberHash {
    template <class Key>
    std::uint64_t operator()(Key key) const {
        return mix(static_cast<std::uint64_t>(key), static_cast<std::uint64_t>(key) >> 32);
    }
};

template <class Key, class Value, class Hash>
class FlatMap {
public:
    Value* find(const Key& key) const {
        const std::uint32_t id = ids_.find(Hash{}(key), [&](std::uint32_t known) { return at(known).first == key; });
        return id == InternTable::kMissing ? nullptr : &at(id).second;
    }
    // The key must be new.
    Value& add(const Key& key, const Value& value) {
        GUIDEWAY_DCHECK(!find(key));
        if (size_ == room_) {
            const std::size_t more = std::min<std::size_t>(room_ + kFirst, kLargest);
            blocks_.push_back(ArenaBlock<Entry>(more));
            room_ += static_cast<std::uint32_t>(more);
        }
        Entry& made = at(size_);
        made = {key, value};
        ids_.add(Hash{}(key), size_);
        ++size_;
        return made.second;
    }
    Value& get(const Key& key) {
        Value* known = find(key);
        return known ? *known : add(key, {});
    }
    // Removes the entries for which f(key, value) is true.
    template <class F>
    void erase_if(F&& f) {
        FlatMap kept;
        for (std::uint32_t i = 0; i < size_; ++i)
            if (!f(at(i).first, at(i).second)) kept.add(at(i).first, at(i).second);
        *this = std::move(kept);
    }
    template <class F>
    void each(F&& f) const {
        for (std::uint32_t i = 0; i < size_; ++i) f(at(i).first, at(i).second);
    }
    void clear() { *this = FlatMap(); }
    std::size_t size() const { return size_; }
    std::size_t bytes() const { return room_ * sizeof(Entry) + ids_.bytes(); }

private:
    using Entry = std::pair<Key, Value>;
    // Blocks of 8, 16, 32, 64 and 128 entries, then of 256: many maps stay small.
    static constexpr std::uint32_t kFirst = 8, kLargest = 256, kSmall = kLargest - kFirst, kSmallBlocks = 5;

    Entry& at(std::uint32_t id) const {
        if (id >= kSmall) return blocks_[kSmallBlocks + (id - kSmall) / kLargest][(id - kSmall) % kLargest];
        const auto block = static_cast<unsigned>(std::bit_width(id + kFirst) - std::bit_width(kFirst));
        return blocks_[block][id + kFirst - (kFirst << block)];
    }

    InternTable ids_;
    std::vector<ArenaBlock<Entry>> blocks_;
    std::uint32_t size_ = 0, room_ = 0;
};

}  // namespace guideway
