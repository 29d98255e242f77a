// Finite sets of texts that grow one by one, as expressions: what was used already and must not come again.
//
// A text that is a JSON string or number stands for all ways to write it; any other text for itself. Sets are interned: equal
// sets have equal ids, 0 is the empty one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/expr.h"
#include "guideway/program.h"

namespace guideway {

// The characters of a JSON string (quotes included in `text`), nothing if it is none.
std::optional<std::u32string> decoded(std::string_view text);

class TextSets {
public:
    explicit TextSets(ExprPool& pool) : pool_(pool) {
        nodes_.push_back({kNone, false, {}});
        sets_.push_back({kNone, 0, kNone, 0, {}});
        ids_.emplace(kNone, 0);
    }
    std::uint32_t plus(std::uint32_t set, std::string_view text);
    ExprId expr(std::uint32_t set) const { return sets_[set].expr; }
    // The texts of `e` that are not in the set.
    ExprId without(ExprId e, std::uint32_t set);
    std::size_t size() const { return nodes_.size(); }

private:
    struct Node {  // of a trie of characters; what is left of a string, its closing quote included
        ExprId expr;
        bool end;
        std::vector<std::pair<char32_t, std::uint32_t>> below;
    };
    struct Set {
        ExprId expr;
        std::uint32_t strings;  // a node
        ExprId others;
        std::uint32_t before = 0;       // the set that it was made from
        std::optional<Decimal> number;  // and the number that was added
    };
    std::uint32_t with(std::uint32_t root, const std::u32string& text);
    ExprId bytes(std::string_view text);

    ExprPool& pool_;
    std::vector<Node> nodes_;  // 0: no text
    std::vector<Set> sets_;
    std::unordered_map<ExprId, std::uint32_t> ids_;
    std::unordered_map<std::uint64_t, ExprId> numbers_left_;  // by numbers and set
};

}  // namespace guideway
