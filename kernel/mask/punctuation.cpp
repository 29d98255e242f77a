#include "guideway/mask/punctuation.h"

#include <algorithm>
#include <array>
#include <string>

namespace guideway {

// The smallest of three fixed sets that contains these bytes, so that suffix tries are shared; else the bytes themselves. The fixed
// sets are bytes that can follow JSON's punctuation.
ByteSet PunctuationLeaves::canonical(const ByteSet& bytes) {
    if (bytes.empty()) return bytes;
    static const auto known = [] {
        std::array<ByteSet, 3> made;
        const char* const members[] = {" \t\n\r\"", " \t\n\r,]}", " \t\n\r\"{[]}:,-0123456789tfn"};
        for (std::size_t i = 0; i < made.size(); ++i)
            for (const char* b = members[i]; *b; ++b) made[i].insert(static_cast<std::uint8_t>(*b));
        return made;
    }();
    for (const ByteSet& set : known)
        if (bytes.within(set)) return set;
    return bytes;
}

// The leaf of a text, perhaps after white space, that all grammars share.
PunctuationLeaves::Leaf& PunctuationLeaves::leaf(ExprPool& pool, std::string_view text, bool spaced) {
    for (Leaf& mark : leaves_)
        if (mark.spaced == spaced && mark.text == text) return mark;
    if (leaves_.size() >= kMostMarks) leaves_.clear();
    ExprId e = literal(pool, text);
    if (spaced) e = pool.concat(pool.repeat(pool.set(kSpace), text.empty() ? 1 : 0, kInfinite), e);
    leaves_.push_back({std::string(text), spaced, e, {}});
    return leaves_.back();
}

const WalkResult& PunctuationLeaves::result(ExprPool& pool, TrieId trie, std::string_view text, bool spaced, const ByteSet& follow) {
    Leaf& found = leaf(pool, text, spaced);
    auto at = std::find_if(found.ids.begin(), found.ids.end(), [&](const auto& entry) { return entry.first == follow; });
    if (at == found.ids.end() && found.ids.size() >= kMostFollows) {
        found.ids.clear();
        at = found.ids.end();
    }
    if (at == found.ids.end()) at = found.ids.insert(at, {follow, results_.ids().of_leaf(follow)});
    return results_.run_shared(pool, trie, at->second, found.expr, follow);
}

}  // namespace guideway
