// The alphabet of the subtree below each node of the vocabulary's trie, as a set of atoms: ASCII bytes, and blocks of 64 characters
// (all UTF-8 bytes except the last). If a state returns to itself by each atom of a subtree, all tokens there are legal and need
// no walk. The alphabet of a node inside a character is that after the character.
//
// If a token ends inside a character, its prefix of the character is an atom too, which only has to lead to a state other than kNone.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/vocabulary/token_trie.h"

namespace guideway {

// The self-loop class of a state q: atoms a with δ(q,a) = q; with `grows` also those that lead to an alternation with q as a part
// (self_loops.h).
struct SelfLoops {
    bool grows = false;  // there are such atoms
    std::uint64_t ascii[2] = {0, 0};
    std::vector<std::uint64_t> blocks;  // as bits; empty if `any` is false, and then not to be used by `loop`
    bool all_blocks = false;
    bool any() const { return ascii[0] | ascii[1]; }
    unsigned count() const { return static_cast<unsigned>(std::popcount(ascii[0]) + std::popcount(ascii[1])); }  // ASCII bytes
};

class SubtreeAlphabets {
public:
    explicit SubtreeAlphabets(const TokenTrie& trie);
    // From a result of `file()` for this trie, which must outlive this. Throws Error(argument) for an index out of range.
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
    // The empty set of blocks, as bits.
    std::vector<std::uint64_t> no_blocks() const { return std::vector<std::uint64_t>(blocks_.size() / 64 + 1); }
    // The number of bytes after the node's byte to the end of its character, if the alphabet after it is known; else 0.
    unsigned left(std::uint32_t node) const { return below_[node] == kUnknown ? 0 : sets_[below_[node]].left; }
    // Whether all atoms below the node are in `loops`, and none of their bytes is in `but`; false inside a character.
    bool loop(std::uint32_t node, const SelfLoops& loops, const ByteSet& but) const {
        return left(node) == 0 && loop_after(node, loops, but);
    }
    // The same, also inside a character, with the loops of the state after it.
    bool loop_after(std::uint32_t node, const SelfLoops& loops, const ByteSet& but) const {
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
    // Whether a character below the node may begin with one of these bytes. `loop` or `loop_after` must be true for the node.
    bool begins(std::uint32_t node, const ByteSet& bytes) const {
        const Set& set = sets_[below_[node]];
        return (set.ascii[0] & bytes.words[0]) | (set.ascii[1] & bytes.words[1]) | (set.count ? bytes.words[2] | bytes.words[3] : 0);
    }
    // Whether there is a block of these bytes, or, with `or_longer`, one that begins with them.
    bool has_block(const std::uint8_t* bytes, unsigned size, bool or_longer) const;
    // The number of characters of the token at a position in the trie's list of tokens, incomplete ones included; 255: 255 or more.
    std::uint8_t characters(std::uint32_t place) const { return characters_[place]; }
    std::uint8_t most_characters() const { return most_; }
    std::size_t bytes() const { return file_.size_bytes(); }

private:
    static constexpr std::uint16_t kUnknown = 0xffff;
    struct Set {
        std::uint64_t ascii[2];
        std::uint32_t first;  // index of its blocks in `members_`
        std::uint16_t count;
        std::uint16_t left;
    };
    friend class SubtreeAlphabetsBuilder;

    void lay_out(std::span<const std::uint64_t> file);

    std::vector<std::uint64_t> owned_;  // the file, if it was built here
    std::span<const std::uint64_t> file_;
    std::span<const std::uint16_t> below_;  // by node: the number of its set
    std::span<const Set> sets_;
    std::span<const std::uint16_t> members_;
    std::span<const Block> blocks_;  // sorted by bytes
    std::span<const std::uint8_t> characters_;
    std::uint8_t most_ = 0;
};

}  // namespace guideway
