// Sets of byte strings that end in tokens, as tries in depth-first order.
//
// Node 0 is the root (the empty string). Node i's subtree is [i, end[i]); its first child is i + 1, the next child of
// the same parent is end[child]. A walk that refuses a node jumps to its end; below a wide node (one of many children)
// it goes straight to the children that it wants. Tokens are in the order of their nodes, so a subtree's tokens are a
// range. The whole vocabulary is one such trie; a suffix trie is what is left of it after a prefix that the current
// component has taken.
//
// For the maintainer: the arrays are views of one block of words, which the trie owns or a mapped file holds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "guideway/base/byte_set.h"

namespace guideway {

struct Suffix {
    std::string_view bytes;
    std::uint32_t token;
};

class TokenTrie {
public:
    struct Wide {
        ByteSet bytes;        // of its children
        std::uint32_t first;  // its children in `children`, in the order of their bytes
        std::uint32_t node;
    };
    static constexpr std::uint32_t kWide = 8;  // children that make a node wide

    std::span<const std::uint32_t> end, first_token, tokens, children;
    std::span<const Wide> wides;
    std::span<const std::uint16_t> depth, wide_of;  // wide_of: 0, or 1 + the number of a Wide
    std::span<const std::uint8_t> byte;

    // `suffixes` need not be sorted, and are sorted in place.
    static TokenTrie of(std::vector<Suffix>& suffixes);
    // A trie over a block written by another process; the block must outlive it. Throws Error(argument) where anything
    // in it points out of place, or names a token from `vocabulary_size` on.
    static TokenTrie over(std::span<const std::uint64_t> block, std::uint32_t vocabulary_size);

    TokenTrie() = default;
    TokenTrie(TokenTrie&&) = default;
    TokenTrie& operator=(TokenTrie&&) = default;

    std::uint32_t size() const { return static_cast<std::uint32_t>(byte.size()); }
    std::span<const std::uint32_t> tokens_at(std::uint32_t node) const {
        return tokens.subspan(first_token[node], first_token[node + 1] - first_token[node]);
    }
    const Wide* wide(std::uint32_t node) const { return wide_of[node] ? &wides[wide_of[node] - 1u] : nullptr; }
    // The child of `node` by `b`, or 0.
    std::uint32_t child(std::uint32_t node, std::uint8_t b) const {
        if (const Wide* w = wide(node)) return w->bytes.contains(b) ? children[w->first + w->bytes.rank(b)] : 0;
        for (std::uint32_t c = node + 1; c < end[node]; c = end[c])
            if (byte[c] == b) return c;
        return 0;
    }
    std::span<const std::uint64_t> block() const { return block_; }
    std::size_t bytes() const { return block_.size_bytes(); }
    friend bool operator==(const TokenTrie& a, const TokenTrie& b) {
        return a.block_.size() == b.block_.size() && std::equal(a.block_.begin(), a.block_.end(), b.block_.begin());
    }

private:
    friend class TokenTrieBuilder;
    void lay_out(std::span<const std::uint64_t> block);
    bool is_whole(std::uint32_t vocabulary_size) const;
    bool leads_on() const;

    std::vector<std::uint64_t> owned_;
    std::span<const std::uint64_t> block_;
};

// Makes a trie node by node, in depth-first order.
class TokenTrieBuilder {
public:
    TokenTrieBuilder() { open(0, 0); }
    std::uint32_t open(std::uint8_t byte, std::uint32_t depth) {
        byte_.push_back(byte);
        depth_.push_back(static_cast<std::uint16_t>(depth));
        end_.push_back(0);
        first_token_.push_back(static_cast<std::uint32_t>(tokens_.size()));
        return static_cast<std::uint32_t>(byte_.size() - 1);
    }
    void token(std::uint32_t token) { tokens_.push_back(token); }
    void close(std::uint32_t node) { end_[node] = static_cast<std::uint32_t>(byte_.size()); }
    TokenTrie build();  // closes the root

private:
    std::vector<std::uint8_t> byte_;
    std::vector<std::uint16_t> depth_;
    std::vector<std::uint32_t> end_, first_token_, tokens_;
};

}  // namespace guideway
