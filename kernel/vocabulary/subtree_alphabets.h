// What is below each node of the vocabulary's trie, as a set of atoms: ASCII bytes, and blocks of 64 characters
// (all UTF-8 bytes but the last). Where a state comes back to itself by every atom of a subtree, every token there is
// legal and nothing below needs to be walked. Of a node inside a character, what is after the character.
//
// An atom for a prefix that a token ends in, inside a character, asks only that the state lives on.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/vocabulary/token_trie.h"

namespace guideway {

// The self-loop class of a state q: atoms a with δ(q,a) = q; with `grows` also those that lead to a sum that contains q (self_loops.h).
struct SelfLoops {
    bool grows = false;  // there are such sums
    std::uint64_t ascii[2] = {0, 0};
    std::vector<std::uint64_t> blocks;  // as bits; empty where not `any`: not for `loop`
    bool all_blocks = false;
    bool any() const { return ascii[0] | ascii[1]; }
    unsigned count() const { return static_cast<unsigned>(std::popcount(ascii[0]) + std::popcount(ascii[1])); }  // ASCII bytes
};

class SubtreeAlphabets {
public:
    explicit SubtreeAlphabets(const TokenTrie& trie);
    // What `file()` gave for this trie; it stays where it is. Throws Error(argument) where anything in it points out of
    // place.
    SubtreeAlphabets(const TokenTrie& trie, std::span<const std::uint64_t> file);
    std::span<const std::uint64_t> file() const { return file_; }
    SubtreeAlphabets(const SubtreeAlphabets&) = delete;
    SubtreeAlphabets& operator=(const SubtreeAlphabets&) = delete;

    // UTF-8 bytes of a block of characters, without the last byte.
    struct Block {
        std::uint8_t size, bytes[3];
    };
    // Sorted by bytes.
    std::span<const Block> blocks() const { return blocks_; }
    // None, as bits.
    std::vector<std::uint64_t> no_blocks() const { return std::vector<std::uint64_t>(blocks_.size() / 64 + 1); }
    // Bytes still to come of the character that the node's byte belongs to, where what is after it is known; else 0.
    unsigned left(std::uint32_t node) const { return below_[node] == kUnknown ? 0 : sets_[below_[node]].left; }
    // Whether all of the node's subtree, read from the start of a character on, loops, and none of its bytes is in `but`;
    // false inside a character.
    bool loop(std::uint32_t node, const SelfLoops& loops, const ByteSet& but) const {
        return left(node) == 0 && loop_behind(node, loops, but);
    }
    // The same inside a character too, where the loops are of the state after it.
    bool loop_behind(std::uint32_t node, const SelfLoops& loops, const ByteSet& but) const {
        const std::uint16_t id = below_[node];
        if (id == kUnknown) return false;
        const Set& set = sets_[id];
        if ((set.ascii[0] & (~loops.ascii[0] | but.words[0])) | (set.ascii[1] & (~loops.ascii[1] | but.words[1]))) return false;
        if (set.count == 0) return true;
        if (but.words[2] | but.words[3]) return false;
        if (loops.all_blocks) return true;
        for (std::uint32_t i = set.first, end = set.first + set.count; i < end; ++i)
            if (!(loops.blocks[members_[i] >> 6] >> (members_[i] & 63) & 1)) return false;
        return true;
    }
    // Of a node for which one of these held: whether a character below it may begin with one of these bytes.
    bool begins(std::uint32_t node, const ByteSet& bytes) const {
        const Set& set = sets_[below_[node]];
        return (set.ascii[0] & bytes.words[0]) | (set.ascii[1] & bytes.words[1]) | (set.count ? bytes.words[2] | bytes.words[3] : 0);
    }
    // Whether there is a block of these bytes; `or_longer`: or one that begins with them.
    bool has_block(const std::uint8_t* bytes, unsigned size, bool or_longer) const;
    // Characters of the token at a place of the trie's list, those begun or ended in it too; 255: that many or more.
    std::uint8_t characters(std::uint32_t place) const { return characters_[place]; }
    std::uint8_t most_characters() const { return most_; }
    std::size_t bytes() const { return file_.size_bytes(); }

private:
    static constexpr std::uint16_t kUnknown = 0xffff;
    struct Set {
        std::uint64_t ascii[2];
        std::uint32_t first;  // of its blocks, in members_
        std::uint16_t count;
        std::uint16_t left;
    };
    friend class SubtreeAlphabetsBuilder;

    void lay_out(std::span<const std::uint64_t> file);

    std::vector<std::uint64_t> owned_;  // the file, where it was made here
    std::span<const std::uint64_t> file_;
    std::span<const std::uint16_t> below_;  // by node: a set
    std::span<const Set> sets_;
    std::span<const std::uint16_t> members_;
    std::span<const Block> blocks_;  // sorted by bytes
    std::span<const std::uint8_t> characters_;
    std::uint8_t most_ = 0;
};

}  // namespace guideway
