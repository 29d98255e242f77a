// Finite sets of texts as tries of characters; each text continues with an expression, its end.
//
// For the user: a node of a trie and a `DecoderState` (the state inside a character) are a state of an automaton over bytes with the
// functions that `LazyDfa` needs: `next`, `live`, `shortest`. Spellings are not expanded: bytes are decoded to characters, in any
// spelling, so a set of keys needs one cell for each character.
//
// For the maintainer: most characters of a set of keys are on a path without branches. Such a path is a chain, with a cell
// for each character, that is interned as a whole; there are nodes only where a text ends or texts diverge. A number denotes a
// node or a position in a chain. Nodes are interned: equal sets from `make` and `plus` have equal numbers. Ends are finite,
// nonempty, and neither boolean nor bounded (`may_end_strings`). Not thread safe, like the pool.
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
    struct Step {  // a child, or a state inside a character at the same node; or neither
        StringNode node{};
        DecoderState part = kBetween;
    };
    struct Entry {
        std::u32string characters;
        ExprId end;
    };
    static constexpr StringNode kNoEntries{0};  // the node without texts

    explicit StringTrie(ExprTable& exprs) : exprs_(exprs) {
        nodes_.push_back({});
        cells_.push_back(0);
    }

    // The set of these texts. Texts with a surrogate are left out.
    StringNode make(std::vector<Entry> texts, Encoding spelling);
    // The set with one more text. `node`: a result of `make` or `plus`, or kNoEntries.
    StringNode plus(StringNode node, const std::u32string& text, ExprId end, Encoding spelling);
    // All texts, with their ends.
    std::vector<Entry> texts(StringNode node) const;

    // The text of a node with a single text.
    Entry only_text(StringNode node) const;

    // The step by a byte of a character. The ends of texts are not considered.
    Step next(StringNode node, DecoderState part, std::uint8_t byte) const {
        return part == kBetween && is_whole_character(byte) ? Step{child(node, byte), kBetween} : next_inside(node, part, byte);
    }
    void live(StringNode node, DecoderState part, ByteSet& made) const;
    std::uint32_t shortest(StringNode node, DecoderState part) const;

    ExprId end(StringNode node) const { return left(node) ? kNone : nodes_[cells_[node]].end; }  // kNone: no text ends here
    Encoding spelling(StringNode node) const { return static_cast<Encoding>(below(node).spelling); }
    ExprId only_tail(StringNode node) const { return below(node).ends; }      // the end of all its texts; kNone: they have different ends
    bool is_end(StringNode node) const { return children(node) == 0; }        // it has only the empty text, with its end
    bool is_plain(StringNode node) const { return below(node).plain; }        // all ends are the empty text
    bool ends_spelled(StringNode node) const { return below(node).spelled; }  // all ends are pieces of JSON strings
    // The greatest label that its texts lead to, kNoLabel if there is none; `last_label_below`: without the empty text.
    std::uint32_t last_label(StringNode node) const { return below(node).label; }
    std::uint32_t last_label_below(StringNode node, DecoderState part) const;
    std::uint32_t children(StringNode node) const { return left(node) ? 1 : nodes_[cells_[node]].count; }
    std::uint32_t count(StringNode node) const { return below(node).texts; }  // number of texts
    std::uint32_t characters(StringNode node) const {                         // number of characters of all texts, plus one for each text
        return sum(below(node).characters, multiply(below(node).texts, left(node)));
    }
    std::uint16_t depth(StringNode node) const { return below(node).depth; }  // maximum depth of its ends
    // Calls f(character, child) for each child that `part` can lead to.
    template <class F>
    void each_child(StringNode node, DecoderState part, F&& f) const {
        each_edge(node, part, [&](const Edge& edge) { f(edge.first, edge.second); });
    }
    // Calls f(character) for each edge below the node.
    template <class F>
    void each_character_below(StringNode node, F&& f) const {
        std::vector<StringNode> open{node};
        while (!open.empty()) {
            const StringNode at = open.back();
            open.pop_back();
            for (const Edge& edge : edges(at)) {
                f(edge.first);
                open.push_back(edge.second);
            }
        }
    }
    // The number of texts that are sorted before the texts of this child.
    std::uint32_t texts_before(StringNode node, StringNode child) const {
        if (left(node)) return 0;
        std::uint32_t made = end(node) != kNone;
        for (const Edge& edge : edges(node)) {
            if (edge.second == child) break;
            made += count(edge.second);
        }
        return made;
    }
    // Calls f(end) for each text, in that order.
    template <class F>
    void each_end(StringNode node, F&& f) const {
        for (std::vector<StringNode> open;; open.pop_back()) {
            const Node& at = below(node);
            if (at.end != kNone) f(at.end);
            for (std::uint32_t i = at.count; i-- > 0;) open.push_back(edges_[at.first + i].second);
            if (open.empty()) return;
            node = open.back();
        }
    }
    std::size_t bytes() const {
        return nodes_.size() * sizeof(Node) + edges_.size() * sizeof(Edge) + cells_.size() * 4 + ids_.bytes() + chain_ids_.bytes();
    }

private:
    using Edge = std::pair<char32_t, StringNode>;
    struct Node {
        ExprId end = kNone, ends = kNone;    // end: of the text that ends here; ends: of all texts, if they are equal
        std::uint32_t first = 0, count = 0;  // edges, by character
        std::uint32_t shortest = kInfinite, texts = 0, characters = 0;
        std::uint16_t depth = 0;
        std::uint8_t spelling = 0;
        bool plain = true, spelled = true;
        std::uint32_t label = kNoLabel;
    };

    class Edges {  // the edges of a node, or the single edge of a position in a chain
    public:
        explicit Edges(std::span<const Edge> some) : some_(some.data()), count_(some.size()) {}
        explicit Edges(const Edge& one) : one_(one), count_(1) {}
        const Edge* begin() const { return some_ ? some_ : &one_; }
        const Edge* end() const { return begin() + count_; }
        // The first edge whose character is at least `c`.
        const Edge* from(char32_t c) const {
            return std::lower_bound(begin(), end(), c, [](const Edge& e, char32_t value) { return e.first < value; });
        }

    private:
        Edge one_{};
        const Edge* some_ = nullptr;
        std::size_t count_;
    };

    // A cell has the index of a node; or, in a chain, a character and the number of cells to the end of the chain. After the last
    // cell of a chain is the number of the node below.
    static constexpr std::uint32_t kInside = 1u << 31;
    static constexpr unsigned kCharacterBits = 21;
    static constexpr std::size_t kMostChained = 1023;
    std::uint32_t left(StringNode at) const { return cells_[at] & kInside ? cells_[at] >> kCharacterBits & kMostChained : 0; }
    static StringNode cell(StringNode at, std::uint32_t offset) { return StringNode{raw(at) + offset}; }
    // The node after the character of a cell with `more` characters left.
    StringNode below_cell(StringNode at, std::uint32_t more) const { return more == 1 ? StringNode{cells_[cell(at, 1)]} : cell(at, 1); }
    char32_t character(StringNode at) const { return cells_[at] & ((1u << kCharacterBits) - 1); }
    // A node, or the node below a chain.
    const Node& below(StringNode at) const {
        const std::uint32_t more = left(at);
        return nodes_[cells_[more ? StringNode{cells_[cell(at, more)]} : at]];
    }
    Edges edges(StringNode at) const {
        if (const std::uint32_t more = left(at)) return Edges(Edge{character(at), below_cell(at, more)});
        const Node& node = nodes_[cells_[at]];
        return Edges(std::span(edges_).subspan(node.first, node.count));
    }
    template <class F>
    void each_edge(StringNode node, DecoderState part, F&& f) const {
        std::pair<char32_t, char32_t> spans[2];
        const Encoding how = spelling(node);
        const unsigned count = spans_of(how, part, spans);
        const Edges all = edges(node);
        for (unsigned i = 0; i < count; ++i)
            for (const Edge* at = all.from(spans[i].first); at != all.end() && at->first <= spans[i].second; ++at)
                if (part == kBetween || fits(how, part, at->first)) f(*at);
    }
    // The child by a character, or kNoEntries.
    StringNode child(StringNode node, char32_t c) const {
        if (const std::uint32_t more = left(node)) return character(node) != c ? kNoEntries : below_cell(node, more);
        const Edges all = edges(node);
        const Edge* const at = all.from(c);
        return at != all.end() && at->first == c ? at->second : kNoEntries;
    }
    Step next_inside(StringNode node, DecoderState part, std::uint8_t byte) const;
    StringNode make_one(const Entry& text, Encoding spelling);
    StringNode intern(ExprId end, std::span<const Edge> edges, Encoding spelling);
    Edge chain(std::u32string_view characters, StringNode below, Encoding spelling);
    StringNode chained(std::u32string_view characters, StringNode below);
    std::u32string path_of(const Edge& edge, StringNode& at) const;

    ExprTable& exprs_;
    SegmentedVector<Node> nodes_;
    std::vector<Edge> edges_;
    SegmentedVector<std::uint32_t, 10, StringNode> cells_;
    InternTable ids_, chain_ids_;
};

}  // namespace guideway
