// Small programs for the tests, written word by word as grammar/program.py does.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "guideway/base/tuning.h"
#include "guideway/grammar/program.h"
#include "guideway/vocabulary/token_block.h"

namespace programs {

// Without mechanisms that accept whole subtrees or use tables of tokens: walks visit all nodes.
inline guideway::Tuning without_subtrees() {
    guideway::Tuning made;
    made.self_loops = made.class_sequences = made.stable_sets = made.plain_tokens = made.alphabet_slices = false;
    return made;
}

using Words = std::vector<std::uint32_t>;

class Writer {
public:
    std::uint32_t chars(std::vector<std::uint32_t> bounds) { return expr(0, static_cast<std::uint32_t>(bounds.size() / 2), bounds); }
    std::uint32_t literal(const std::string& text) {
        Words cps;
        for (char c : text) cps.push_back(static_cast<std::uint8_t>(c));
        cps.insert(cps.begin(), static_cast<std::uint32_t>(text.size()));
        return expr(1, 1, cps);
    }
    // Each of these texts: its length and its characters.
    std::uint32_t literals(std::uint32_t count, const Words& texts) { return expr(1, count, texts); }
    std::uint32_t string(std::uint32_t spelling, bool others, std::uint32_t count, const Words& texts) {
        Words rest{others, count};
        rest.insert(rest.end(), texts.begin(), texts.end());
        return expr(11, spelling, rest);
    }
    std::uint32_t concat(Words ids) { return list(2, ids); }
    std::uint32_t either(Words ids) { return list(3, ids); }
    std::uint32_t both(Words ids) { return list(4, ids); }
    std::uint32_t without(std::uint32_t id) {
        exprs_.insert(exprs_.end(), {5u, id});
        return n_exprs_++;
    }
    std::uint32_t repeat(std::uint32_t id, std::uint32_t minimum, std::uint32_t maximum) { return expr(6, id, {minimum, maximum}); }
    std::uint32_t spelled(std::uint32_t id, std::uint32_t spelling) { return expr(7, id, {spelling}); }
    std::uint32_t special(const std::string& name) {
        Words cps;
        for (char c : name) cps.push_back(static_cast<std::uint8_t>(c));
        return list(9, cps);
    }
    std::uint32_t special(std::uint32_t token) {
        exprs_.insert(exprs_.end(), {10u, token});
        return n_exprs_++;
    }
    // The substrings of a text that begin where a flag says, and end where one does; variants as pairs.
    std::uint32_t substrings(const std::u32string& text, const std::vector<std::uint8_t>& flags, bool empty, const Words& variants) {
        Words rest{static_cast<std::uint32_t>(text.size())};
        for (std::size_t i = 0; i < text.size(); ++i) rest.push_back(static_cast<std::uint32_t>(text[i]) << 2 | flags[i]);
        rest.push_back(flags[text.size()] & 2 ? 1 : 0);
        rest.push_back(static_cast<std::uint32_t>(variants.size() / 2));
        rest.insert(rest.end(), variants.begin(), variants.end());
        return expr(12, empty, rest);
    }
    std::uint32_t quoted(std::uint32_t id) { return concat({literal("\""), spelled(id, 1), literal("\"")}); }

    std::uint32_t node(Words words) {
        nodes_.insert(nodes_.end(), words.begin(), words.end());
        return n_nodes_++;
    }
    static Words marks(bool space, const std::string& open, const std::string& close) {
        Words made{space};
        for (const std::string& text : {open, std::string(","), std::string(":"), close}) {
            made.push_back(static_cast<std::uint32_t>(text.size()));
            for (char c : text) made.push_back(static_cast<std::uint8_t>(c));
        }
        return made;
    }
    Words program(std::uint32_t root) const {
        Words made{guideway::kProgramMagic, guideway::kProgramVersion, n_exprs_, n_nodes_, root};
        made.insert(made.end(), exprs_.begin(), exprs_.end());
        made.insert(made.end(), nodes_.begin(), nodes_.end());
        return made;
    }

private:
    std::uint32_t expr(std::uint32_t op, std::uint32_t first, const Words& rest) {
        exprs_.push_back(op);
        exprs_.push_back(first);
        exprs_.insert(exprs_.end(), rest.begin(), rest.end());
        return n_exprs_++;
    }
    std::uint32_t list(std::uint32_t op, const Words& ids) { return expr(op, static_cast<std::uint32_t>(ids.size()), ids); }

    Words exprs_, nodes_;
    std::uint32_t n_exprs_ = 0, n_nodes_ = 0;
};

// {"name": string, "kids": [itself, ...]?} in any order, with or without spaces between.
inline Words tree(bool ordered, bool space) {
    Writer w;
    const std::uint32_t text = w.quoted(w.repeat(w.chars({0, 0x10ffff}), 0, 0xffffffff));
    const std::uint32_t name = w.quoted(w.literal("name")), kids = w.quoted(w.literal("kids"));
    Words object{3};
    for (std::uint32_t word : Writer::marks(space, "{", "}")) object.push_back(word);
    for (std::uint32_t word : {std::uint32_t{ordered}, 0u, ~0u, 0u, 0u, 0u, 2u, name, 1u, 1u, 0u, 1u, kids, 0u, 1u, 0u, 2u, 0u})
        object.push_back(word);
    w.node(object);
    w.node({0, text});
    Words array{4};
    for (std::uint32_t word : Writer::marks(space, "[", "]")) array.push_back(word);
    for (std::uint32_t word : {0u, 3u, 0u, 0u, 0u, 1u, 0u, 0u}) array.push_back(word);  // 0 to 3 items, no prefix, rest: node 0
    w.node(array);
    return w.program(0);
}

// [ab]{1,3} then c* : a leaf of one node, or two leaves in a sequence that overlap.
inline Words letters(bool split) {
    Writer w;
    const std::uint32_t head = w.repeat(w.chars({'a', 'b'}), 1, 3), tail = w.repeat(w.chars({'b', 'c'}), 0, 0xffffffff);
    if (!split) {
        w.node({0, w.concat({head, tail})});
        return w.program(0);
    }
    w.node({0, head});
    w.node({0, tail});
    w.node({1, 2, 0, 1});
    return w.program(2);
}

inline constexpr unsigned kCounted = 7;
// What the mechanisms of tuning.h are for, by kind: counts near and beyond the longest token, and strings with some texts left out.
inline Words counted(unsigned kind) {
    Writer w;
    const std::uint32_t any = w.chars({0, 0x10ffff}), letters = w.chars({'a', 'c', 0xe9, 0xe9});
    std::uint32_t made = 0;
    if (kind == 0) made = w.quoted(w.repeat(any, 0, 7));
    else if (kind == 1) made = w.concat({w.repeat(letters, 2, 40), w.literal("x")});
    else if (kind == 2) made = w.repeat(w.concat({w.repeat(letters, 1, 0xffffffff), w.literal(" ")}), 0, 9);
    else if (kind == 3) made = w.concat({w.repeat(any, 30, 90), w.literal("!")});
    else if (kind == 5) made = w.quoted(w.repeat(w.chars({'"', '"', 'a', 'b'}), 1, 20));  // in few characters
    else if (kind == 6)
        made = w.concat({w.repeat(w.concat({w.quoted(w.repeat(w.chars({'a', 'c'}), 0, 3)), w.literal(",")}), 0, 0xffffffff),
                         w.quoted(w.literal("ab"))});
    else {
        const std::uint32_t all = w.repeat(any, 0, 0xffffffff);
        made = w.quoted(w.both({all, w.without(w.either({w.literal("kids"), w.literal("ab"), w.literal("abc"), w.literal("\n")}))}));
    }
    w.node({0, made});
    return w.program(0);
}

inline void add(Words& words, std::initializer_list<std::uint32_t> more) { words.insert(words.end(), more.begin(), more.end()); }

// Any names, none twice: 1 to 3 entries, whose values are letters that meet two demands in overlapping ways.
// `most`: how many different marks may count.
inline Words demands(bool ordered, std::uint32_t most = 2) {
    Writer w;
    const std::uint32_t letter = w.repeat(w.chars({'a', 'c'}), 0, 2), short_name = w.quoted(w.repeat(w.chars({'a', 'b'}), 0, 2));
    Words object{3};
    for (std::uint32_t word : Writer::marks(!ordered, "{", "}")) object.push_back(word);
    add(object, {ordered, 1, 3, 3, 2, most, 1, w.quoted(w.literal("name")), 0, 2, 1, 1, 2, 2, 1, short_name, 0, 2, 0, 1, 2, 2});
    w.node(object);
    w.node({0, w.quoted(letter)});
    w.node({0, w.quoted(w.literal("b"))});
    return w.program(0);
}

// Different values: integers from -1 to 2 by value, or strings of at most one letter.
inline Words unique() {
    Writer w;
    Words array{4};
    for (std::uint32_t word : Writer::marks(true, "[", "]")) array.push_back(word);
    add(array, {2, ~0u, 1, 0, 0, 1, 0, 1});
    w.node(array);
    w.node({2, 2, 2, 3});
    // One cell, low -1 and high 2.5, a multiple of 1.
    w.node({5, 0, 1, 3, 1, 0, 1, 1, 0, ~0u, 2, 2, 5, 1, 0, 0, 1, 1, 0});
    w.node({0, w.quoted(w.repeat(w.chars({'a', 'b'}), 0, 1))});
    return w.program(0);
}

// One to three numbers: at least one below 10 and no more than two multiples of 0.5 that are not whole.
inline Words counted() {
    Writer w;
    Words array{4};
    for (std::uint32_t word : Writer::marks(false, "[", "]")) array.push_back(word);
    add(array, {1, 3, 0, 2, 1, ~0u, 0, 2, 1, 1, 1, 1, 2, 0, 1, 2, 2});
    w.node(array);
    w.node({5, 0, 1, 10, 0, 1, 1, 1, 0, 0});               // below 10, exclusive
    w.node({5, 0, 1, 0, 1, 0, ~0u, 1, 5, 1, 0, 0, 1, 1});  // a multiple of 0.5, not of 1
    return w.program(0);
}

// Recursive grammars: sums with brackets; pairs whose parts can be split in several ways; sequences of brackets, each of
// which can be empty.
inline Words calls(unsigned kind) {
    Writer w;
    if (kind == 0) {
        w.node({2, 2, 1, 2});
        w.node({2, 2, 3, 4});
        w.node({1, 3, 1, 5, 0});
        w.node({0, w.repeat(w.chars({'a', 'c'}), 1, 2)});
        w.node({1, 3, 6, 0, 7});
        for (const char* text : {"b", "[", "]"}) w.node({0, w.literal(text)});
    } else if (kind == 1) {
        w.node({2, 2, 1, 2});
        w.node({0, w.either({w.literal("a"), w.literal("ab"), w.literal("b"), w.literal("bc")})});
        w.node({1, 3, 3, 0, 0});
        w.node({0, w.literal("c")});
    } else {
        w.node({2, 2, 1, 2});
        w.node({0, w.concat({})});
        w.node({1, 4, 3, 0, 4, 0});
        for (const char* text : {"[", "]"}) w.node({0, w.literal(text)});
    }
    return w.program(0);
}

inline constexpr const char* kSpecialName = "<|a|>";
inline constexpr std::uint32_t kSpecial = 257;  // its id in `tokens()`

// Special tokens: by name or id between letters; around a recursive node; a name without a token, which is text.
inline Words special(unsigned kind) {
    Writer w;
    const std::uint32_t letters = w.repeat(w.chars({'a', 'c'}), 0, 3);
    if (kind == 0) w.node({0, w.concat({letters, w.special(kSpecialName), w.either({w.literal("b"), w.special(kSpecial)}), letters})});
    else if (kind == 1) {
        w.node({2, 2, 1, 2});
        w.node({0, w.concat({letters, w.literal("b")})});
        w.node({1, 4, 3, 0, 4, 0});
        w.node({0, w.special(kSpecial)});
        w.node({0, w.either({w.special(kSpecialName), w.literal("]")})});
    } else w.node({0, w.concat({w.special("<|none|>"), letters})});
    return w.program(0);
}

// Keys without a closing quote: one of any length, one that is a text or its prefix.
inline Words bare(bool ordered) {
    Writer w;
    const std::uint32_t letters = w.repeat(w.chars({'a', 'b'}), 0, 0xffffffff);
    const std::uint32_t open = w.concat({w.literal("n"), letters}), split = w.concat({w.literal("kid"), w.repeat(w.literal("s"), 0, 1)});
    const std::uint32_t quoted = w.concat({w.literal("\""), w.literal("ab"), w.literal("\""), w.repeat(w.literal("c"), 0, 2)});
    Words object{3};
    for (std::uint32_t word : Writer::marks(!ordered, "{", "}")) object.push_back(word);
    add(object, {ordered, 0, ~0u, 0, 0, 0, 3, open, 1, 1, 0, 1, split, 0, 1, 0, 1, quoted, 0, 1, 0, 1, 0});
    w.node(object);
    w.node({0, w.chars({'a', 'c'})});
    return w.program(0);
}

// Strings that occur in a text: alone; in quotes between word boundaries; in either case, with text after them.
inline Words verbatim(unsigned kind) {
    Writer w;
    const std::u32string text = U"ab \u00e9\"abc\n\U0001f600 abcc ab\u00e9";
    std::vector<std::uint8_t> flags(text.size() + 1, 3);
    for (std::size_t i = 0; kind > 0 && i <= text.size(); ++i) {
        const bool space_here = i == text.size() || text[i] == U' ', space_before = i == 0 || text[i - 1] == U' ';
        flags[i] = static_cast<std::uint8_t>((space_before && !space_here ? 1 : 0) | (space_here && !space_before ? 2 : 0));
    }
    if (kind == 0) w.node({0, w.substrings(text, flags, true, {})});
    else if (kind == 1) w.node({0, w.quoted(w.substrings(text, flags, false, {}))});
    else w.node({0, w.concat({w.substrings(text, flags, false, {'A', 'a', 'B', 'b', 0xc9, 0xe9}), w.repeat(w.literal("c"), 0, 3)})});
    return w.program(0);
}

// All of them, to drive and to mutate, over a vocabulary that has the special token.
inline std::vector<Words> all() {
    return {tree(true, false), tree(false, true), letters(false), letters(true), demands(true), demands(false), unique(),
            counted(),         calls(0),          calls(1),       calls(2),      special(0),    special(1),     special(2),
            bare(true),        bare(false),       verbatim(0),    verbatim(1),   verbatim(2)};
}

inline std::vector<std::string> tokens() {
    std::vector<std::string> made{""};
    for (int b = 0; b < 256; ++b) made.emplace_back(1, static_cast<char>(b));
    made.emplace_back(kSpecialName);
    for (const char* text : {"\"name", "{\"", "\":", "\":\"", "\"}", "\",\"", "kids", "[{", "]}", "}]", "ab", "abc", "bc", "ccc",
                             "\xc3\xa9", "\xa9x", ", \"", "\\u0"})
        made.emplace_back(text);
    return made;
}

// The tokens as one block.
inline std::string block_of(const std::vector<std::string>& all) {
    guideway::TokenBlockWriter made(all.size());
    for (const std::string& token : all) made.add(token);
    return made.take();
}

// Some 9,000 tokens: those of tokens(), then letters, digits, structure, escapes and characters of several bytes, of up to
// 24 pieces. Large enough for each mechanism of tuning.h.
inline std::vector<std::string> many_tokens() {
    const char* const pieces[] = {"a",
                                  "b",
                                  "c",
                                  "d",
                                  "e",
                                  "on",
                                  "ti",
                                  "the",
                                  "0",
                                  "9",
                                  "-",
                                  " ",
                                  "\"",
                                  "\",",
                                  "\":",
                                  "\"}",
                                  "{\"",
                                  "\n",
                                  "\\n",
                                  "\\u00",
                                  "\xc3\xa9",
                                  "\xc3",
                                  "\xe6\x97\xa5",
                                  "\xe6\x97",
                                  "\xf0\x9f\x98\x80",
                                  "\xc8\x95"};
    std::mt19937 chance(3);
    std::vector<std::string> made = tokens();
    while (made.size() < 9000) {
        const std::size_t most = chance() % 20 ? 5 : 24;  // one call per expression: operands have no order
        const std::size_t length = 1 + chance() % most, kinds = chance() % 4 ? 12 : std::size(pieces);
        std::string one;
        for (std::size_t i = 0; i < length; ++i) one += pieces[chance() % kinds];
        made.push_back(std::move(one));
    }
    return made;
}

}  // namespace programs
