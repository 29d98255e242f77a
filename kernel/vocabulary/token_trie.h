// Tries of byte strings with tokens, in depth-first order.
//
// Node 0 is the root (the empty string). The subtree of node i is [i, end[i]); its first child is i + 1, and the next sibling of a
// child is end[child]. A walk skips a rejected node by a jump to its end; at a wide node (one with many children) it visits only
// the children that can continue. Tokens are in the order of their nodes, so the tokens of a subtree are a range. The whole
// vocabulary is one such trie; a suffix trie has the rests of tokens after a prefix that a component has accepted.
//
// For the maintainer: the arrays are views of one block of words, which the trie owns or which is in a mapped file.
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
        ByteSet bytes;        // bytes of its children
        std::uint32_t first;  // index of its children in `children`, in the order of their bytes
        std::uint32_t node;
    };
    static constexpr std::uint32_t kWide = 8;  // minimum number of children of a wide node

    std::span<const std::uint32_t> end, first_token, tokens, children;
    std::span<const Wide> wides;
    std::span<const std::uint16_t> depth, wide_of;  // wide_of: 0, or 1 + the number of a Wide
    std::span<const std::uint8_t> byte;

    // `suffixes` need not be sorted, and are sorted in place.
    static TokenTrie of(std::vector<Suffix>& suffixes);
    // A trie over a block from another process; the block must outlive it. Throws Error(argument) for an index out of range, or a
    // token that is not less than `vocabulary_size`.
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
    bool is_valid(std::uint32_t vocabulary_size) const;
    bool has_valid_wides() const;

    std::vector<std::uint64_t> owned_;
    std::span<const std::uint64_t> block_;
};

// Builds a trie node by node, in depth-first order.
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
