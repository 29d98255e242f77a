// Finite sets of texts, as expressions: the keys or items that must not be repeated.
//
// A text that is a JSON string, number, array or object represents all spellings of this value; any other text only itself. Sets are
// interned: equal sets have equal ids.
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

enum class ValueSet : std::uint32_t {};

class UsedValues {
public:
    static constexpr ValueSet kEmptySet{0};
    static constexpr ValueSet kAllTexts{0xffffffff};  // instead of a set: all texts

    explicit UsedValues(ExprPool& pool) : pool_(pool) {
        sets_.push_back({});
        ids_.emplace(kNone, kEmptySet);
    }
    // The set with one more text.
    ValueSet plus(ValueSet set, std::string_view text);
    // An upper bound of the number of its values.
    std::uint32_t count(ValueSet set) const { return sets_[set].count; }
    ExprId expr(ValueSet set) const { return sets_[set].expr; }
    // The texts of `e` that are not in the set.
    ExprId without(ExprId e, ValueSet set);
    std::size_t size() const { return sets_.size(); }
    // All spellings of a JSON scalar.
    static ExprId spellings(ExprPool& pool, std::string_view text);

private:
    struct Set {
        ExprId expr = kNone;
        StringNode strings{};           // a node of the pool's string tries: the strings without their opening quotes
        ExprId others = kNone;          // texts that are no strings, arrays or objects
        ExprId scalars = kNone;         // strings and others
        ExprId composites = kNone;      // arrays and objects
        ValueSet before{};              // the set without the last text
        std::uint32_t count = 0;        // upper bound of the number of its values
        std::optional<Decimal> number;  // the value of the last text, if it is a number
    };

    ExprPool& pool_;
    IdVector<ValueSet, Set> sets_;
    std::unordered_map<ExprId, ValueSet> ids_;
    std::unordered_map<std::uint64_t, ExprId> numbers_left_;  // results of `without`, by a number expression and a set
};

}  // namespace guideway
