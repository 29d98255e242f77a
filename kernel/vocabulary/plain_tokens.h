// Tokens that a JSON string takes as they are, "plain" ones: whole characters without quote, backslash or control, the
// last of which may be cut off. All others, the structural ones, are a separate trie.
//
// A state that comes back to itself by every such character, at most n times, has all plain tokens of up to n
// characters; only the structural ones need a walk, some thousands of nodes instead of the vocabulary. They are in three
// tries: those whose first structural byte is a control, which such a state mostly does not take; long ones, few, which tell
// counts apart that are all the same to the others; and the rest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "guideway/vocabulary/subtree_alphabets.h"
#include "guideway/vocabulary/token_trie.h"

namespace guideway {

class TokenTable;

class PlainTokens {
public:
    explicit PlainTokens(const TokenTable& vocabulary);
    // What `file()` gave for this vocabulary; it stays where it is. Throws Error(argument) where anything in it points
    // out of place.
    PlainTokens(std::span<const std::uint64_t> file, std::uint32_t vocabulary_size);
    PlainTokens(const PlainTokens&) = delete;
    PlainTokens& operator=(const PlainTokens&) = delete;
    std::span<const std::uint64_t> file() const { return file_; }

    // Whether a state that loops by these atoms takes every plain token.
    static bool accepted_by(const SelfLoops& loops);
    enum Structural : unsigned { control, longer, rest, kinds };
    const TokenTrie& structural(Structural kind) const { return structural_[kind]; }
    // Plain tokens of more than this many characters, and the others; each in no order that means anything.
    std::span<const std::uint32_t> longer_than(std::uint32_t characters) const { return std::span(by_length_).first(first(characters)); }
    std::span<const std::uint32_t> up_to(std::uint32_t characters) const { return std::span(by_length_).subspan(first(characters)); }
    std::uint32_t most_characters() const { return static_cast<std::uint32_t>(first_.size()); }

private:
    void lay_out(std::uint32_t vocabulary_size);
    std::size_t first(std::uint32_t characters) const { return characters < first_.size() ? first_[characters] : 0; }

    std::vector<std::uint64_t> owned_;  // the file, where it was made here
    std::span<const std::uint64_t> file_;
    std::span<const std::uint32_t> by_length_;  // from the longest down
    std::span<const std::uint32_t> first_;      // by n: how many are longer than n characters
    TokenTrie structural_[kinds];
};

}  // namespace guideway
