// Finite sets of texts that grow one by one, as expressions: what was used already and must not come again.
//
// A text that is a JSON string, number, array or object represents all ways to write it; any other text only itself. Sets are
// interned: equal sets have equal ids, 0 is the empty one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/grammar/program.h"
#include "guideway/regex/expr_pool.h"
#include "guideway/regex/string_trie.h"

namespace guideway {

// The characters of a JSON string (quotes included in `text`), nothing if it is none.
std::optional<std::u32string> decoded(std::string_view text);

class UsedValues {
public:
    explicit UsedValues(ExprPool& pool) : pool_(pool) {
        sets_.push_back({});
        ids_.emplace(kNone, 0);
    }
    std::uint32_t plus(std::uint32_t set, std::string_view text);
    std::uint32_t count(std::uint32_t set) const { return sets_[set].count; }  // of its texts, at most
    ExprId expr(std::uint32_t set) const { return sets_[set].expr; }
    // The texts of `e` that are not in the set.
    ExprId without(ExprId e, std::uint32_t set);
    std::size_t size() const { return sets_.size(); }
    // All ways to write a JSON scalar.
    static ExprId spellings(ExprPool& pool, std::string_view text);

private:
    struct Set {
        ExprId expr = kNone;
        std::uint32_t strings = 0;      // a node of the pool's words; each continues with its closing quote
        ExprId others = kNone;          // that are no strings, arrays or objects
        ExprId scalars = kNone;         // both of these
        ExprId boxes = kNone;           // arrays and objects
        std::uint32_t before = 0;       // the set that it was made from
        std::uint32_t count = 0;        // of its texts, at most
        std::optional<Decimal> number;  // and the number that was added
    };

    ExprPool& pool_;
    std::vector<Set> sets_;
    std::unordered_map<ExprId, std::uint32_t> ids_;
    std::unordered_map<std::uint64_t, ExprId> numbers_left_;  // by numbers and set
};

}  // namespace guideway
