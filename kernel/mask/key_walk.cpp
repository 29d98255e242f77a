#include "guideway/mask/key_walk.h"

#include <algorithm>

#include "guideway/mask/string_walk.h"
#include "guideway/regex/string_trie.h"

namespace guideway {

namespace {

constexpr std::uint32_t kMaxKeys = 1 << 20;

struct KeySink {
    static constexpr bool kRanks = true;
    const StringTrie& strings;
    const TokenTrie& x;
    KeyWalk& made;

    void at(std::uint32_t i, const StringTrie::Step& at, std::uint32_t first) {
        if (x.first_token[i] == x.first_token[i + 1]) return;
        if (at.part == kBetween) return made.places.push_back({first, first + strings.count(at.node), i});
        strings.each_child(at.node, at.part, [&](char32_t, StringNode child) {
            const std::uint32_t from = first + strings.texts_before(at.node, child);
            made.places.push_back({from, from + strings.count(child), i});
        });
    }
    void over(std::uint32_t i, std::uint32_t key) {
        made.places.push_back({key, key + 1, i});
        made.exits.push_back({key, i});
    }
};

}  // namespace

bool KeyWalk::run(ExprPool& pool, const TrieForest& forest, ExprId state) {
    labels.clear();
    places.clear();
    exits.clear();
    const StringTrie& strings = pool.strings();
    const bool within = pool[state].op == Op::strings;  // the opening quote of the key was read
    const ExprId rest = within ? state : after_byte(pool, kQuote, state);
    KeySink sink{strings, *forest.trie, *this};
    StringWalk<KeySink> walk(strings, *forest.trie, sink);
    if (const std::uint32_t label = label_of(pool, rest); label != kNoLabel) {
        labels.push_back(label);
        walk.each_quote(forest, [&](std::uint32_t top) { sink.over(top, 0); });
        return true;
    }
    if (pool[rest].op != Op::strings) return false;
    const auto [node, part] = std::pair{pool[rest].string_node(), pool[rest].part()};
    if (strings.count(node) > kMaxKeys) return false;
    strings.each_end(node, [&](ExprId end) { labels.push_back(label_of(pool, after_byte(pool, kQuote, end))); });
    if (std::find(labels.begin(), labels.end(), kNoLabel) != labels.end()) return false;
    walk.run(forest, {node, part}, !within);
    return true;
}

}  // namespace guideway
