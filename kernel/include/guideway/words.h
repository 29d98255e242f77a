// Finite sets of texts as tries of characters; each text goes on with an expression, its end.
//
// For the user: a node of a trie and a `Part` (what was read of a character whose spelling is not over) are a state of
// an automaton over bytes, as `ExprPool` wants it: `next`, `live`, `shortest`. Nothing is spelled out: a character is
// decoded as its bytes come, in whichever of its spellings, so a set of names costs as many nodes as it has characters.
//
// For the maintainer: nodes are interned, equal sets have equal numbers. Ends are neither boolean nor endless, nor do
// they count; they are alive. Not thread safe, like the pool.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "guideway/blocks.h"
#include "guideway/bytes.h"
#include "guideway/id_table.h"
#include "guideway/spelling.h"
#include "guideway/expr.h"

namespace guideway {

// A character begun: what kind of spelling, how much of it came, and which bits it gave. 0: none.
using Part = std::uint32_t;

class Words {
public:
    struct Step {  // to a node's child, or on inside a character; or neither
        std::uint32_t node = 0;
        Part part = 0;
    };
    struct Text {
        std::u32string characters;
        ExprId end;
    };
    static constexpr std::uint32_t kNowhere = 0;  // the node without texts

    explicit Words(ExprPool& pool) : pool_(pool) { nodes_.push_back({}); }

    // Texts with a surrogate in them are none.
    std::uint32_t make(std::vector<Text> texts, Spelling spelling);
    std::uint32_t plus(std::uint32_t node, const std::u32string& text, ExprId end, Spelling spelling);
    // All texts, `tail` behind each.
    std::vector<Text> texts(std::uint32_t node) const;

    // The text of a node that has one.
    Text only_text(std::uint32_t node) const;

    // By a byte of a character; what a text's end takes is not looked at.
    Step next(std::uint32_t node, Part part, std::uint8_t byte) const;
    void live(std::uint32_t node, Part part, ByteSet& made) const;
    std::uint32_t shortest(std::uint32_t node, Part part) const;

    ExprId end(std::uint32_t node) const { return nodes_[node].end; }  // kNone: no text ends here
    Spelling spelling(std::uint32_t node) const { return static_cast<Spelling>(nodes_[node].spelling); }
    bool is_end(std::uint32_t node) const { return nodes_[node].count == 0; }  // nothing but the empty text, and its end
    bool is_plain(std::uint32_t node) const { return nodes_[node].plain; }     // no end holds more than the empty text
    bool ends_spelled(std::uint32_t node) const { return nodes_[node].spelled; }  // all ends are pieces of JSON strings
    // The greatest label that its texts lead to, kInfinite if there is none; `below`: not counting the empty text.
    std::uint32_t last_label(std::uint32_t node) const { return nodes_[node].label; }
    std::uint32_t last_label_below(std::uint32_t node, Part part) const;
    std::uint32_t children(std::uint32_t node) const { return nodes_[node].count; }
    std::uint32_t count(std::uint32_t node) const { return nodes_[node].texts; }            // of texts
    std::uint32_t characters(std::uint32_t node) const { return nodes_[node].characters; }  // of all its texts, and one for each
    std::uint16_t depth(std::uint32_t node) const { return nodes_[node].depth; }            // of its ends
    // Calls f(child, bytes of its character's shortest spelling from the part on) for each child that the part may become.
    template <class F>
    void each_child(std::uint32_t node, Part part, F&& f) const {
        each_edge(node, part, [&](const Edge& edge) { f(edge.second, rest(spelling(node), part, edge.first)); });
    }
    // Calls f(character) for each of these children.
    template <class F>
    void each_character(std::uint32_t node, Part part, F&& f) const {
        each_edge(node, part, [&](const Edge& edge) { f(edge.first); });
    }
    // How many texts come before those that go on with this child, in the order of all.
    std::uint32_t texts_before(std::uint32_t node, std::uint32_t child) const {
        std::uint32_t made = nodes_[node].end != kNone;
        for (std::uint32_t at = nodes_[node].first; edges_[at].second != child; ++at) made += nodes_[edges_[at].second].texts;
        return made;
    }
    // Calls f(end) for each text, in that order.
    template <class F>
    void each_end(std::uint32_t node, F&& f) const {
        std::vector<std::uint32_t> open{node};
        while (!open.empty()) {
            const Node& at = nodes_[open.back()];
            open.pop_back();
            if (at.end != kNone) f(at.end);
            for (std::uint32_t i = at.count; i-- > 0;) open.push_back(edges_[at.first + i].second);
        }
    }
    std::size_t bytes() const { return nodes_.size() * (sizeof(Node) + 16) + edges_.size() * sizeof(edges_[0]); }

private:
    using Edge = std::pair<char32_t, std::uint32_t>;
    struct Node {
        ExprId end = kNone;
        std::uint32_t first = 0, count = 0;  // edges, by character
        std::uint32_t shortest = kInfinite, texts = 0, characters = 0;
        std::uint16_t depth = 0;
        std::uint8_t spelling = 0;
        bool plain = true, spelled = true;
        std::uint32_t label = kInfinite;
    };

    template <class F>
    void each_edge(std::uint32_t node, Part part, F&& f) const {
        std::pair<char32_t, char32_t> spans[2];
        const unsigned count = spans_of(spelling(node), part, spans);
        for (unsigned i = 0; i < count; ++i)
            for (std::uint32_t at = lower(node, spans[i].first); at < nodes_[node].first + nodes_[node].count && edges_[at].first <= spans[i].second; ++at)
                if (part == 0 || fits(spelling(node), part, edges_[at].first)) f(edges_[at]);
    }
    std::uint32_t intern(ExprId end, std::span<const Edge> edges, Spelling spelling);
    std::uint32_t lower(std::uint32_t node, char32_t c) const;
    static unsigned spans_of(Spelling spelling, Part part, std::pair<char32_t, char32_t>* spans);
    static bool fits(Spelling spelling, Part part, char32_t c);
    static std::uint32_t rest(Spelling spelling, Part part, char32_t c);

    ExprPool& pool_;
    Blocks<Node> nodes_;
    std::vector<Edge> edges_;
    IdTable ids_;
};

}  // namespace guideway
