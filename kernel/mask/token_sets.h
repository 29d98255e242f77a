// Sets of tokens, each kept once: equal sets of the same form have equal numbers.
//
// A set has one of three forms: a list of token ids (sparse), a mask row (dense), or a delta: a base, which is a list or a row,
// without the cleared tokens and with the added ones. Numbers stay valid until a `sweep` where they are not in use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "guideway/base/bit_row.h"
#include "guideway/base/byte_set.h"
#include "guideway/base/dcheck.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/page_arena.h"
#include "guideway/mask/ids.h"

namespace guideway {

struct TokenSet {
    enum class Form : std::uint8_t { unused, sparse, dense, delta };
    Form form = Form::unused;
    TokenSetId base{};                // of a delta: a list or a row
    std::uint32_t cleared_count = 0;  // of a delta: the first `cleared_count` ids of `data` are cleared, the others added
    ArenaBlock<std::uint32_t> data;   // token ids; words of a row
    std::span<const std::uint32_t> cleared() const { return std::span(data).first(cleared_count); }
    std::span<const std::uint32_t> added() const { return std::span(data).subspan(cleared_count); }
    // For a list or a row.
    bool holds(std::uint32_t token) const {
        return form == Form::dense ? has_bit(data, token) : std::binary_search(data.begin(), data.end(), token);
    }
};

class TokenSets {
public:
    explicit TokenSets(std::uint32_t words) : words_(words) {}

    // A list of token ids in rising order; an id may be repeated.
    TokenSetId sparse(std::span<const std::uint32_t> tokens) {
        GUIDEWAY_DCHECK(std::ranges::is_sorted(tokens));
        return keep(TokenSet::Form::sparse, {}, 0, tokens);
    }
    // A row; one with few bits becomes a list.
    TokenSetId row(std::span<const std::uint32_t> words);
    // `base` is a list or a row. `cleared` and `added` have no token in common.
    TokenSetId delta(TokenSetId base, std::vector<std::uint32_t> cleared, const std::vector<std::uint32_t>& added);
    // The same for any set: for a delta, another delta of the same base.
    TokenSetId changed(TokenSetId set, std::vector<std::uint32_t> cleared, std::vector<std::uint32_t> added);

    const TokenSet& operator[](TokenSetId id) const {
        GUIDEWAY_DCHECK(raw(id) < sets_.size() && sets_[id].form != TokenSet::Form::unused);
        return sets_[id];
    }
    // Writes the set, or the base of a delta, to a row (`write`), or adds it to the content of the row (`merge`).
    void write(TokenSetId id, std::span<std::uint32_t> row) const;
    void merge(TokenSetId id, std::span<std::uint32_t> row) const;
    // The base of a delta; other sets are their own base.
    TokenSetId delta_base(TokenSetId id) const { return sets_[id].form == TokenSet::Form::delta ? sets_[id].base : id; }
    // Adds the tokens of its base that a delta has cleared.
    void restore(TokenSetId id, std::span<std::uint32_t> row) const;
    // Appends the token ids of a list or a row.
    void append(TokenSetId id, std::vector<std::uint32_t>& tokens) const;
    // Clears and adds the tokens of a delta.
    void change(TokenSetId id, std::span<std::uint32_t> row) const;

    // Removes every set whose number is not set in `used`. `used` is resized; bases of used deltas are used too.
    void sweep(std::vector<bool>& used);
    std::size_t bytes() const { return bytes_; }
    std::size_t size() const { return sets_.size() - free_.size(); }

private:
    TokenSetId keep(TokenSet::Form form, TokenSetId base, std::uint32_t cleared_count, std::span<const std::uint32_t> data);
    static std::uint64_t hash(TokenSet::Form form, TokenSetId base, std::uint32_t cleared_count, std::span<const std::uint32_t> data);
    static std::size_t cost(const TokenSet& set) { return set.data.size() * 4 + sizeof(TokenSet) + 48; }

    std::uint32_t words_;
    IdVector<TokenSetId, TokenSet, ArenaAllocator<TokenSet>> sets_;
    std::vector<TokenSetId> free_;
    InternTable ids_;
    std::size_t bytes_ = 0;
};

}  // namespace guideway
