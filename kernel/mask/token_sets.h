// Sets of tokens, each kept once: equal sets of the same form have equal numbers.
//
// A set has one of three forms: a list of token ids (sparse), a mask row (dense), or a delta: a base, which is a list or a row,
// without the cleared tokens and with the added ones. Numbers stay valid until a `sweep` where they are not in use.
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
    std::uint32_t base = 0;           // of a delta: the number of a list or a row
    std::uint32_t cleared_count = 0;  // of a delta: the first `cleared_count` ids of `data` are cleared, the others added
    ArenaBlock<std::uint32_t> data;   // token ids; words of a row
    std::span<const std::uint32_t> cleared() const { return std::span(data).first(cleared_count); }
    std::span<const std::uint32_t> added() const { return std::span(data).subspan(cleared_count); }
    // For a list or a row.
    bool holds(std::uint32_t token) const {
        return form == Form::dense ? data[token >> 5] >> (token & 31) & 1 : std::binary_search(data.begin(), data.end(), token);
    }
};

class TokenSets {
public:
    explicit TokenSets(std::uint32_t words) : words_(words) {}

    // A list of token ids in rising order; an id may be repeated.
    std::uint32_t sparse(std::span<const std::uint32_t> tokens) {
        GUIDEWAY_DCHECK(std::ranges::is_sorted(tokens));
        return keep(TokenSet::Form::sparse, 0, 0, tokens);
    }
    // A row; one with few bits becomes a list.
    std::uint32_t row(std::span<const std::uint32_t> words);
    // `base` is a list or a row. `cleared` and `added` have no token in common.
    std::uint32_t delta(std::uint32_t base, std::vector<std::uint32_t> cleared, const std::vector<std::uint32_t>& added);
    // The same for any set: for a delta, another delta of the same base.
    std::uint32_t changed(std::uint32_t set, std::vector<std::uint32_t> cleared, std::vector<std::uint32_t> added);

    const TokenSet& operator[](std::uint32_t id) const {
        GUIDEWAY_DCHECK(id < sets_.size() && sets_[id].form != TokenSet::Form::unused);
        return sets_[id];
    }
    // Writes the set, or the base of a delta, to a row (`write`), or adds it to the content of the row (`merge`).
    void write(std::uint32_t id, std::span<std::uint32_t> row) const;
    void merge(std::uint32_t id, std::span<std::uint32_t> row) const;
    // The base of a delta; other sets are their own base.
    std::uint32_t delta_base(std::uint32_t id) const { return sets_[id].form == TokenSet::Form::delta ? sets_[id].base : id; }
    // Adds the tokens of its base that a delta has cleared.
    void restore(std::uint32_t id, std::span<std::uint32_t> row) const;
    // Appends the token ids of a list or a row.
    void append(std::uint32_t id, std::vector<std::uint32_t>& tokens) const;
    // Clears and adds the tokens of a delta.
    void change(std::uint32_t id, std::span<std::uint32_t> row) const;

    // Removes every set whose number is not set in `used`. `used` is resized; bases of used deltas are used too.
    void sweep(std::vector<bool>& used);
    std::size_t bytes() const { return bytes_; }
    std::size_t size() const { return sets_.size() - free_.size(); }

private:
    std::uint32_t keep(TokenSet::Form form, std::uint32_t base, std::uint32_t cleared_count, std::span<const std::uint32_t> data);
    static std::uint64_t hash(TokenSet::Form form, std::uint32_t base, std::uint32_t cleared_count, std::span<const std::uint32_t> data);
    static std::size_t cost(const TokenSet& set) { return set.data.size() * 4 + sizeof(TokenSet) + 48; }

    std::uint32_t words_;
    ArenaVector<TokenSet> sets_;
    std::vector<std::uint32_t> free_;
    InternTable ids_;
    std::size_t bytes_ = 0;
};

}  // namespace guideway
