// Sets of tokens, each kept once: ids of equal sets, written the same way, are equal.
//
// A set is a list of ids, or a whole mask row, or (where it is nearly another) one of these that tokens are taken from
// and added to. Ids stay valid until `sweep` is informed that no user needs them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/base/dcheck.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/page_arena.h"

namespace guideway {

struct TokenSet {
    enum class Form : std::uint8_t { unused, sparse, dense, delta };
    Form form = Form::unused;
    std::uint32_t base = 0;          // delta: a list or a row
    std::uint32_t cleared = 0;       // delta: this many of `data` are taken from it, the others added
    ArenaBlock<std::uint32_t> data;  // ids, or words
    std::span<const std::uint32_t> taken() const { return std::span(data).first(cleared); }
    std::span<const std::uint32_t> added() const { return std::span(data).subspan(cleared); }
    // Of a list or a row.
    bool holds(std::uint32_t token) const {
        return form == Form::dense ? data[token >> 5] >> (token & 31) & 1 : std::binary_search(data.begin(), data.end(), token);
    }
};

class TokenSets {
public:
    explicit TokenSets(std::uint32_t words) : words_(words) {}

    // A list of ids in rising order; an id may come twice.
    std::uint32_t sparse(std::span<const std::uint32_t> tokens) {
        GUIDEWAY_DCHECK(std::ranges::is_sorted(tokens));
        return keep(TokenSet::Form::sparse, 0, 0, tokens);
    }
    // A row; few bits become a list.
    std::uint32_t row(std::span<const std::uint32_t> words);
    std::uint32_t delta(std::uint32_t base, std::vector<std::uint32_t> cleared, const std::vector<std::uint32_t>& added);
    // The same of any set: of a delta it is one of the delta's own base.
    std::uint32_t changed(std::uint32_t set, std::vector<std::uint32_t> cleared, std::vector<std::uint32_t> added);

    const TokenSet& operator[](std::uint32_t id) const {
        GUIDEWAY_DCHECK(id < sets_.size() && sets_[id].form != TokenSet::Form::unused);
        return sets_[id];
    }
    // The set without what a delta clears or adds: into a row whose content is lost, or on top of it.
    void write(std::uint32_t id, std::span<std::uint32_t> row) const;
    void merge(std::uint32_t id, std::span<std::uint32_t> row) const;
    // The list or row that a set begins as.
    std::uint32_t delta_base(std::uint32_t id) const { return sets_[id].form == TokenSet::Form::delta ? sets_[id].base : id; }
    // Puts back what a delta cleared of its base.
    void restore(std::uint32_t id, std::span<std::uint32_t> row) const;
    // The ids of a list or a row.
    void append(std::uint32_t id, std::vector<std::uint32_t>& tokens) const;
    // What a delta clears and adds.
    void change(std::uint32_t id, std::span<std::uint32_t> row) const;

    // Forgets every set whose number is not set in `used` (resized to fit; bases of used ones are used).
    void sweep(std::vector<bool>& used);
    std::size_t bytes() const { return bytes_; }
    std::size_t size() const { return sets_.size() - free_.size(); }

private:
    std::uint32_t keep(TokenSet::Form form, std::uint32_t base, std::uint32_t cleared, std::span<const std::uint32_t> data);
    static std::uint64_t hash(TokenSet::Form form, std::uint32_t base, std::uint32_t cleared, std::span<const std::uint32_t> data);
    static std::size_t cost(const TokenSet& set) { return set.data.size() * 4 + sizeof(TokenSet) + 48; }

    std::uint32_t words_;
    ArenaVector<TokenSet> sets_;
    std::vector<std::uint32_t> free_;
    InternTable ids_;
    std::size_t bytes_ = 0;
};

}  // namespace guideway
