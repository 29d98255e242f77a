// Plain tokens: tokens of characters that a JSON string can contain unescaped, which are all but quote, backslash and control
// characters. The last character may be incomplete. All other tokens are structural.
//
// A state that returns to itself by each of these characters, at most n times, accepts all plain tokens of up to n characters; only
// the structural ones need a walk, over some thousands of nodes instead of the vocabulary. They are in three tries: tokens whose
// first structural byte is a control character, which such a state usually rejects; long tokens, which are few, and
// which alone distinguish large counts; and the rest.
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
    // From a result of `file()` for this vocabulary, which must outlive this. Throws Error(argument) for an index out of range.
    PlainTokens(std::span<const std::uint64_t> file, std::uint32_t vocabulary_size);
    PlainTokens(const PlainTokens&) = delete;
    PlainTokens& operator=(const PlainTokens&) = delete;
    std::span<const std::uint64_t> file() const { return file_; }

    // Whether a state with these self-loops accepts all plain tokens.
    static bool accepted_by(const SelfLoops& loops);
    enum Structural : unsigned { control, longer, rest, kinds };
    const TokenTrie& structural(Structural kind) const { return structural_[kind]; }
    // Plain tokens of more than this many characters, and the others, in unspecified order.
    std::span<const std::uint32_t> longer_than(std::uint32_t characters) const { return std::span(by_length_).first(first(characters)); }
    std::span<const std::uint32_t> up_to(std::uint32_t characters) const { return std::span(by_length_).subspan(first(characters)); }
    std::uint32_t most_characters() const { return static_cast<std::uint32_t>(first_.size()); }

private:
    void lay_out(std::uint32_t vocabulary_size);
    std::size_t first(std::uint32_t characters) const { return characters < first_.size() ? first_[characters] : 0; }

    std::vector<std::uint64_t> owned_;  // the file, if it was built here
    std::span<const std::uint64_t> file_;
    std::span<const std::uint32_t> by_length_;  // plain tokens, the longest first
    std::span<const std::uint32_t> first_;      // by n: the number of plain tokens of more than n characters
    TokenTrie structural_[kinds];
};

}  // namespace guideway
