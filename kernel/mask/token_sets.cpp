#include "guideway/mask/token_sets.h"

#include <algorithm>
#include <iterator>

#include "guideway/base/bit_row.h"
#include "guideway/base/simd.h"
#include "guideway/base/sort_unique.h"

namespace guideway {

std::uint64_t TokenSets::hash(TokenSet::Form form, TokenSetId base, std::uint32_t cleared_count, std::span<const std::uint32_t> data) {
    std::uint64_t h = mix(static_cast<std::uint64_t>(form), std::uint64_t{raw(base)} << 32 | cleared_count);
    std::size_t i = 0;
    for (; i + 1 < data.size(); i += 2) h = (h ^ (std::uint64_t{data[i]} << 32 | data[i + 1])) * 0x9e3779b97f4a7c15ULL;
    if (i < data.size()) h = mix(h, data[i]);
    return mix(h, data.size());
}

TokenSetId TokenSets::keep(TokenSet::Form form, TokenSetId base, std::uint32_t cleared_count, std::span<const std::uint32_t> data) {
    const std::uint64_t h = hash(form, base, cleared_count, data);
    const std::uint32_t known = ids_.find(h, [&](std::uint32_t id) {
        const TokenSet& set = sets_[TokenSetId{id}];
        return set.form == form && set.base == base && set.cleared_count == cleared_count && std::ranges::equal(set.data, data);
    });
    if (known != InternTable::kMissing) return TokenSetId{known};
    TokenSet set{form, base, cleared_count, ArenaBlock<std::uint32_t>(data)};
    bytes_ += cost(set);
    TokenSetId id = sets_.next();
    if (free_.empty()) sets_.push_back(std::move(set));
    else {
        id = free_.back();
        free_.pop_back();
        sets_[id] = std::move(set);
    }
    ids_.add(h, raw(id));
    return id;
}

TokenSetId TokenSets::row(std::span<const std::uint32_t> words) {
    if (ones(words) > words_ / 2) return keep(TokenSet::Form::dense, {}, 0, words);
    std::vector<std::uint32_t> tokens;
    for (std::uint32_t i = 0; i < words.size(); ++i)
        for (std::uint32_t w = words[i]; w; w &= w - 1) tokens.push_back(i * 32 + static_cast<std::uint32_t>(std::countr_zero(w)));
    return sparse(tokens);
}

TokenSetId TokenSets::delta(TokenSetId base, std::vector<std::uint32_t> cleared, const std::vector<std::uint32_t>& added) {
    if (cleared.empty() && added.empty()) return base;
    GUIDEWAY_DCHECK(sets_[base].form == TokenSet::Form::sparse || sets_[base].form == TokenSet::Form::dense);
    GUIDEWAY_DCHECK(std::ranges::none_of(added, [&](std::uint32_t t) { return std::ranges::find(cleared, t) != cleared.end(); }));
    const auto count = static_cast<std::uint32_t>(cleared.size());
    cleared.insert(cleared.end(), added.begin(), added.end());
    return keep(TokenSet::Form::delta, base, count, cleared);
}

TokenSetId TokenSets::changed(TokenSetId id, std::vector<std::uint32_t> cleared, std::vector<std::uint32_t> added) {
    const TokenSet& set = sets_[id];
    if (set.form != TokenSet::Form::delta) return delta(id, std::move(cleared), added);
    const auto without = [](std::span<const std::uint32_t> some, const std::vector<std::uint32_t>& others) {
        std::vector<std::uint32_t> left;
        std::copy_if(some.begin(), some.end(), std::back_inserter(left),
                     [&](std::uint32_t t) { return !std::binary_search(others.begin(), others.end(), t); });
        return left;
    };
    std::sort(cleared.begin(), cleared.end());
    std::sort(added.begin(), added.end());
    const std::vector<std::uint32_t> still_cleared = without(set.cleared(), added), still_added = without(set.added(), cleared);
    cleared.insert(cleared.end(), still_cleared.begin(), still_cleared.end());
    added.insert(added.end(), still_added.begin(), still_added.end());
    sort_unique(cleared);
    sort_unique(added);
    return delta(set.base, std::move(cleared), added);
}

void TokenSets::write(TokenSetId id, std::span<std::uint32_t> row) const {
    const TokenSet& set = sets_[id].form == TokenSet::Form::delta ? sets_[sets_[id].base] : sets_[id];
    if (set.form == TokenSet::Form::dense) copy(set.data, row);
    else {
        clear_row(row);
        set_bits(row, set.data);
    }
}

void TokenSets::merge(TokenSetId id, std::span<std::uint32_t> row) const {
    const TokenSet& set = sets_[id].form == TokenSet::Form::delta ? sets_[sets_[id].base] : sets_[id];
    if (set.form == TokenSet::Form::dense) join(set.data, row);
    else set_bits(row, set.data);
}

void TokenSets::restore(TokenSetId id, std::span<std::uint32_t> row) const {
    const TokenSet& set = sets_[id];
    if (set.form != TokenSet::Form::delta) return;
    const TokenSet& base = sets_[set.base];
    for (const std::uint32_t t : set.cleared())
        if (base.holds(t)) set_bit(row, t);
}

void TokenSets::append(TokenSetId id, std::vector<std::uint32_t>& tokens) const {
    const TokenSet& set = sets_[id];
    if (set.form == TokenSet::Form::sparse) tokens.insert(tokens.end(), set.data.begin(), set.data.end());
    else
        for (std::uint32_t i = 0; i < set.data.size(); ++i)
            for (std::uint32_t w = set.data[i]; w; w &= w - 1) tokens.push_back(i * 32 + static_cast<std::uint32_t>(std::countr_zero(w)));
}

void TokenSets::change(TokenSetId id, std::span<std::uint32_t> row) const {
    const TokenSet& set = sets_[id];
    if (set.form != TokenSet::Form::delta) return;
    clear_bits(row, set.cleared());
    set_bits(row, set.added());
}

void TokenSets::sweep(std::vector<bool>& used) {
    used.resize(sets_.size());
    for (const TokenSetId id : sets_.ids())
        if (used[raw(id)] && sets_[id].form == TokenSet::Form::delta) used[raw(sets_[id].base)] = true;
    for (const TokenSetId id : sets_.ids()) {
        if (used[raw(id)] || sets_[id].form == TokenSet::Form::unused) continue;
        bytes_ -= cost(sets_[id]);
        sets_[id] = TokenSet{};
        free_.push_back(id);
    }
    ids_ = {};
    for (const TokenSetId id : sets_.ids())
        if (const TokenSet& set = sets_[id]; used[raw(id)] && set.form != TokenSet::Form::unused)
            ids_.add(hash(set.form, set.base, set.cleared_count, set.data), raw(id));
}

}  // namespace guideway
