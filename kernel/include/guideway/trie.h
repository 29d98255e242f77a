// Sets of byte strings that end in tokens, as tries in depth-first order.
//
// Node 0 is the root (the empty string). Node i's subtree is [i, end[i]); its first child is i + 1, the next child of
// the same parent is end[child]. A walk that refuses a node jumps to its end. The whole vocabulary is one such trie; a
// residual trie is what is left of it after a prefix that the current component has taken.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace guideway {

struct Suffix {
    std::string_view bytes;
    std::uint32_t token;
};

struct Trie {
    std::vector<std::uint8_t> byte;
    std::vector<std::uint32_t> end;
    std::vector<std::uint16_t> depth;
    std::vector<std::uint32_t> first_token;  // tokens of node i: [first_token[i], first_token[i + 1])
    std::vector<std::uint32_t> tokens;

    // `suffixes` need not be sorted, and are sorted in place.
    static Trie of(std::vector<Suffix>& suffixes);

    std::uint32_t size() const { return static_cast<std::uint32_t>(byte.size()); }
    std::span<const std::uint32_t> tokens_at(std::uint32_t node) const {
        return {tokens.data() + first_token[node], tokens.data() + first_token[node + 1]};
    }
    // The child of `node` by `b`, or 0.
    std::uint32_t child(std::uint32_t node, std::uint8_t b) const {
        for (std::uint32_t c = node + 1; c < end[node]; c = end[c])
            if (byte[c] == b) return c;
        return 0;
    }
    std::size_t bytes() const { return byte.size() * 11 + tokens.size() * 4; }
    friend bool operator==(const Trie&, const Trie&) = default;
};

}  // namespace guideway
