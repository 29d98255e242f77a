// Finite sets of texts as tries of characters; each text continues with an expression, its end.
//
// For the user: a node of a trie and a `DecoderState` (what was read of a character whose spelling is not over) are a state of
// an automaton over bytes, as `LazyDfa` wants it: `next`, `live`, `shortest`. Nothing is spelled out: a character is
// decoded as its bytes come, in whichever of its spellings, so a set of names costs as many nodes as it has characters.
//
// For the maintainer: most characters of a set of names lie on a way without branches. Such a way is a chain, of a cell
// for each character, that is interned as a whole; a node is made where a text ends or texts part. A number names a node or
// a place inside a chain. Nodes are interned: equal sets that `make` and `plus` give have equal numbers. Ends are neither
// boolean nor endless, nor do they count; they are alive. Not thread safe, like the pool.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/segmented_vector.h"
#include "guideway/regex/characters.h"
#include "guideway/regex/encoding.h"
#include "guideway/regex/expr.h"

namespace guideway {

class StringTrie {
public:
    struct Step {  // to a node's child, or on inside a character; or neither
        std::uint32_t node = 0;
        DecoderState part = 0;
    };
    struct Entry {
        std::u32string characters;
        ExprId end;
    };
    static constexpr std::uint32_t kNoEntries = 0;  // the node without texts

    explicit StringTrie(ExprTable& exprs) : exprs_(exprs) {
        nodes_.push_back({});
        cells_.push_back(0);
    }

    // Texts with a surrogate in them are none.
    std::uint32_t make(std::vector<Entry> texts, Encoding spelling);
    // `node` is one that these two gave, or kNowhere.
    std::uint32_t plus(std::uint32_t node, const std::u32string& text, ExprId end, Encoding spelling);
    // All texts, `tail` after each.
    std::vector<Entry> texts(std::uint32_t node) const;

    // The text of a node that has one.
    Entry only_text(std::uint32_t node) const;

    // By a byte of a character; what a text's end takes is not looked at.
    Step next(std::uint32_t node, DecoderState part, std::uint8_t byte) const;
    void live(std::uint32_t node, DecoderState part, ByteSet& made) const;
    std::uint32_t shortest(std::uint32_t node, DecoderState part) const;

    ExprId end(std::uint32_t node) const { return left(node) ? kNone : nodes_[cells_[node]].end; }  // kNone: no text ends here
    Encoding spelling(std::uint32_t node) const { return static_cast<Encoding>(below(node).spelling); }
    ExprId only_tail(std::uint32_t node) const { return below(node).ends; }      // what all its texts end in; kNone: in different ones
    bool is_end(std::uint32_t node) const { return children(node) == 0; }        // nothing but the empty text, and its end
    bool is_plain(std::uint32_t node) const { return below(node).plain; }        // no end holds more than the empty text
    bool ends_spelled(std::uint32_t node) const { return below(node).spelled; }  // all ends are pieces of JSON strings
    // The greatest label that its texts lead to, kNoLabel if there is none; `below`: not counting the empty text.
    std::uint32_t last_label(std::uint32_t node) const { return below(node).label; }
    std::uint32_t last_label_below(std::uint32_t node, DecoderState part) const;
    std::uint32_t children(std::uint32_t node) const { return left(node) ? 1 : nodes_[cells_[node]].count; }
    std::uint32_t count(std::uint32_t node) const { return below(node).texts; }  // of texts
    std::uint32_t characters(std::uint32_t node) const {                         // of all its texts, and one for each
        return sum(below(node).characters, multiply(below(node).texts, left(node)));
    }
    std::uint16_t depth(std::uint32_t node) const { return below(node).depth; }  // of its ends
    // Calls f(child, bytes of its character's shortest spelling from the part on) for each child that the part may become.
    template <class F>
    void each_child(std::uint32_t node, DecoderState part, F&& f) const {
        each_edge(node, part, [&](const Edge& edge) { f(edge.second, bytes_left(spelling(node), part, edge.first)); });
    }
    // Calls f(character) for each of these children.
    template <class F>
    void each_character(std::uint32_t node, DecoderState part, F&& f) const {
        each_edge(node, part, [&](const Edge& edge) { f(edge.first); });
    }
    // Calls f(character) for each edge below the node.
    template <class F>
    void each_character_below(std::uint32_t node, F&& f) const {
        std::vector<std::uint32_t> open{node};
        while (!open.empty()) {
            const std::uint32_t at = open.back();
            open.pop_back();
            for (const Edge& edge : edges(at)) {
                f(edge.first);
                open.push_back(edge.second);
            }
        }
    }
    // How many texts come before those that continue with this child, in the order of all.
    std::uint32_t texts_before(std::uint32_t node, std::uint32_t child) const {
        std::uint32_t made = end(node) != kNone;
        for (const Edge& edge : edges(node)) {
            if (edge.second == child) break;
            made += count(edge.second);
        }
        return made;
    }
    // Calls f(end) for each text, in that order.
    template <class F>
    void each_end(std::uint32_t node, F&& f) const {
        std::vector<std::uint32_t> open{node};
        while (!open.empty()) {
            const Node& at = below(open.back());
            open.pop_back();
            if (at.end != kNone) f(at.end);
            for (std::uint32_t i = at.count; i-- > 0;) open.push_back(edges_[at.first + i].second);
        }
    }
    std::size_t bytes() const {
        return nodes_.size() * sizeof(Node) + edges_.size() * sizeof(Edge) + cells_.size() * 4 + ids_.bytes() + chain_ids_.bytes();
    }

private:
    using Edge = std::pair<char32_t, std::uint32_t>;
    struct Node {
        ExprId end = kNone, ends = kNone;    // its own; that of all its texts, if it is one
        std::uint32_t first = 0, count = 0;  // edges, by character
        std::uint32_t shortest = kInfinite, texts = 0, characters = 0;
        std::uint16_t depth = 0;
        std::uint8_t spelling = 0;
        bool plain = true, spelled = true;
        std::uint32_t label = kNoLabel;
    };

    class Edges {  // of a node; or the one of a place in a chain
    public:
        explicit Edges(std::span<const Edge> some) : some_(some.data()), count_(some.size()) {}
        explicit Edges(const Edge& one) : one_(one), count_(1) {}
        const Edge* begin() const { return some_ ? some_ : &one_; }
        const Edge* end() const { return begin() + count_; }
        // The first whose character is this one or a later one.
        const Edge* from(char32_t c) const {
            return std::lower_bound(begin(), end(), c, [](const Edge& e, char32_t value) { return e.first < value; });
        }

    private:
        Edge one_{};
        const Edge* some_ = nullptr;
        std::size_t count_;
    };

    // A cell holds the index of a node; or, in a chain, a character, and how many it still is to the chain's end. After a
    // chain's last cell is the number of the node below.
    static constexpr std::uint32_t kInside = 1u << 31;
    static constexpr unsigned kCharacterBits = 21;
    static constexpr std::size_t kMostChained = 1023;
    std::uint32_t left(std::uint32_t at) const { return cells_[at] & kInside ? cells_[at] >> kCharacterBits & kMostChained : 0; }
    char32_t character(std::uint32_t at) const { return cells_[at] & ((1u << kCharacterBits) - 1); }
    // Of a chain what it leads to.
    const Node& below(std::uint32_t at) const {
        const std::uint32_t more = left(at);
        return nodes_[cells_[more ? cells_[at + more] : at]];
    }
    Edges edges(std::uint32_t at) const {
        if (const std::uint32_t more = left(at)) return Edges(Edge{character(at), more == 1 ? cells_[at + 1] : at + 1});
        const Node& node = nodes_[cells_[at]];
        return Edges(std::span(edges_).subspan(node.first, node.count));
    }
    template <class F>
    void each_edge(std::uint32_t node, DecoderState part, F&& f) const {
        std::pair<char32_t, char32_t> spans[2];
        const Encoding how = spelling(node);
        const unsigned count = spans_of(how, part, spans);
        const Edges all = edges(node);
        for (unsigned i = 0; i < count; ++i)
            for (const Edge* at = all.from(spans[i].first); at != all.end() && at->first <= spans[i].second; ++at)
                if (part == 0 || fits(how, part, at->first)) f(*at);
    }
    std::uint32_t make_one(const Entry& text, Encoding spelling);
    std::uint32_t intern(ExprId end, std::span<const Edge> edges, Encoding spelling);
    Edge chain(std::u32string_view characters, std::uint32_t below, Encoding spelling);
    std::uint32_t chained(std::u32string_view characters, std::uint32_t below);
    std::u32string way(const Edge& edge, std::uint32_t& at) const;

    ExprTable& exprs_;
    SegmentedVector<Node> nodes_;
    std::vector<Edge> edges_;
    SegmentedVector<std::uint32_t, 10> cells_;
    InternTable ids_, chain_ids_;
};

}  // namespace guideway
