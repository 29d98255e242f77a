// Values by key, in open addressing: an entry costs no allocation of its own. Entries do not move while others are
// added; erasing goes by a predicate, over all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "guideway/bytes.h"
#include "guideway/id_table.h"

namespace guideway {

struct NumberHash {
    std::uint64_t operator()(std::uint64_t key) const { return mix(key, key >> 32); }
};

template <class Key, class Value, class Hash>
class FlatMap {
public:
    Value* find(const Key& key) const {
        const std::uint32_t id = ids_.find(Hash{}(key), [&](std::uint32_t known) { return at(known).first == key; });
        return id == IdTable::kMissing ? nullptr : &at(id).second;
    }
    // The key must not be there yet.
    Value& add(const Key& key, const Value& value) {
        if ((size_ & kMask) == 0 && size_ >> kBits == blocks_.size()) blocks_.push_back(std::make_unique<Entry[]>(std::size_t{1} << kBits));
        Entry& made = at(size_);
        made = {key, value};
        ids_.add(Hash{}(key), size_++);
        return made.second;
    }
    Value& get(const Key& key) {
        Value* known = find(key);
        return known ? *known : add(key, {});
    }
    // f(key, value): whether to forget it.
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

private:
    using Entry = std::pair<Key, Value>;
    static constexpr unsigned kBits = 8;  // of the number of entries in a block
    static constexpr std::uint32_t kMask = (1u << kBits) - 1;

    Entry& at(std::uint32_t id) const { return blocks_[id >> kBits][id & kMask]; }

    IdTable ids_;
    std::vector<std::unique_ptr<Entry[]>> blocks_;
    std::uint32_t size_ = 0;
};

}  // namespace guideway
