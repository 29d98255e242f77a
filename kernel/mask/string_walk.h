// Walks a trie and a set of texts that end with a quote in parallel, byte by byte, without an expression for each state between.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "guideway/base/thread_scratch.h"
#include "guideway/mask/leaf_walk.h"
#include "guideway/regex/string_trie.h"

namespace guideway {

inline constexpr std::uint8_t kQuote = '"';

// `Sink` receives each reached node: at(node, position in the texts, first), where texts can continue after the node's tokens;
// over(node, first), where one has ended by its quote. first: the number of texts that are sorted before these, if Sink::kRanks.
template <class Sink>
class StringWalk {
public:
    StringWalk(const StringTrie& strings, const TokenTrie& trie, Sink& sink) : strings_(strings), x_(trie), sink_(sink) {}

    // From a position in the texts after their opening quote; or, if `quoted`, from that quote, which is before the position.
    void run(const TrieForest& forest, const StringTrie::Step& start, bool quoted) {
        if (!quoted) {
            for (const TrieForest::Part& one : forest.parts)
                run(one.begin, one.end, start, forest.whole() ? std::optional(0u) : std::nullopt);
            return;
        }
        each_quote(forest, [&](std::uint32_t top) {
            sink_.at(top, start, 0);
            run(top + 1, x_.end[top], start, top);
        });
    }
    // Calls f(node) for each first node of the forest whose byte is a quote.
    template <class F>
    void each_quote(const TrieForest& forest, F&& f) const {
        if (!forest.whole())
            for (const TrieForest::Part& part : forest.parts)
                if (x_.byte[part.begin] == kQuote) f(part.begin);
        if (const std::uint32_t top = forest.whole() ? x_.child(0, kQuote) : 0) f(top);
    }

private:
    static constexpr std::uint32_t kFew = 4;

    // Walks the nodes [begin, end) from a position. `whole_of`: they are all the nodes below this one.
    void run(std::uint32_t begin, std::uint32_t end, const StringTrie::Step& start, std::optional<std::uint32_t> whole_of) {
        std::vector<Level>& path = path_;
        path.assign(1, {start, 0, end, wanted(start, true), {}});
        if (whole_of) path[0].filter = ChildFilter(x_, *whole_of, path[0].wanted);
        for (std::uint32_t i = begin; i < end;) {
            while (i >= path.back().end) path.pop_back();  // the depth of the node would be another look-up
            const Level& here = path.back();
            if (const std::uint32_t wanted = here.filter.next(x_, i); wanted != i) {
                i = wanted;
                continue;
            }
            const auto [node, part] = here.step;
            const std::uint8_t byte = x_.byte[i];
            if (!here.wanted.contains(byte)) {
                i = x_.end[i];
                continue;
            }
            if (byte == kQuote && part == kBetween && strings_.end(node) != kNone) {
                sink_.over(i, here.first);
                i = x_.end[i];
                continue;
            }
            const StringTrie::Step next = strings_.next(node, part, byte);
            if (next.node == StringTrie::kNoEntries) {
                i = x_.end[i];
                continue;
            }
            std::uint32_t first = here.first;
            if constexpr (Sink::kRanks) first += next.part == kBetween ? strings_.texts_before(node, next.node) : 0;
            sink_.at(i, next, first);
            if (const std::uint32_t last = x_.end[i]; last > i + 1) {
                const bool wide = x_.wide(i) != nullptr;
                const ByteSet bytes = wanted(next, wide);
                path.push_back({next, first, last, bytes, wide ? ChildFilter(x_, i, bytes) : ChildFilter()});
            }
            ++i;
        }
    }

    // The bytes that can follow; or all bytes, where the node has few children and many texts continue: this is cheaper.
    ByteSet wanted(const StringTrie::Step& at, bool wide) const {
        if (!wide && strings_.children(at.node) > kFew) return ByteSet::range(0, 255);
        ByteSet made;
        strings_.live(at.node, at.part, made);
        if (at.part == kBetween && strings_.end(at.node) != kNone) made.insert(kQuote);
        return made;
    }

    struct Level {
        StringTrie::Step step;
        std::uint32_t first;  // number of texts before those of the step's node
        std::uint32_t end;    // of the subtree
        ByteSet wanted;
        ChildFilter filter;
    };
    const StringTrie& strings_;
    const TokenTrie& x_;
    Sink& sink_;
    std::vector<Level>& path_ = thread_scratch<StringWalk, Level>();
};

}  // namespace guideway
