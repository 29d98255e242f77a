// The tokens of a model as bytes, and the tries and tables that are built of them once.
//
// A token without bytes is never in a mask. The bytes of a special token are its name: it is in a mask where the grammar
// asks for it by that name, and is walked as `special_text`, whose first byte occurs in no UTF-8 text (nor in any token
// here: tokens with that byte are never legal). End-of-sequence tokens are special, and in a mask when the text is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guideway/vocabulary/plain_tokens.h"
#include "guideway/vocabulary/subtree_alphabets.h"
#include "guideway/vocabulary/token_block.h"
#include "guideway/vocabulary/token_trie.h"

namespace guideway {

inline constexpr std::uint8_t kSpecialByte = 0xff;
inline constexpr std::size_t kSpecialBytes = 5;
// What a special token is walked as: that byte, and its number.
std::string special_text(std::uint32_t id);

class TokenTable {
public:
    // Throws Error(argument) for ids out of range or tokens longer than 60,000 bytes.
    TokenTable(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special);
    TokenTable(const std::vector<std::string>& tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special);
    // The same from what `file()` returned for an equal table, in this process or another of the same byte order, instead
    // of building it. The file is not copied, and `owner` keeps it. Throws Error(argument) if it belongs to other tokens
    // or is no such file.
    TokenTable(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
               std::span<const std::uint64_t> file, std::shared_ptr<const void> owner);
    TokenTable(const TokenTable&) = delete;
    TokenTable& operator=(const TokenTable&) = delete;

    // What takes long to build.
    std::vector<std::uint64_t> file() const;
    std::uint32_t size() const { return static_cast<std::uint32_t>(starts_.size() - 1); }
    std::uint32_t words() const { return (size() + 31) / 32; }
    // Empty for a token that is never legal.
    std::string_view token(std::uint32_t id) const { return tokens()[id]; }
    TokenView tokens() const { return {starts_, text_.data()}; }
    bool is_eos(std::uint32_t id) const;
    // Whether a grammar may ask for it by its number.
    bool is_special(std::uint32_t id) const {
        return id < size() && token(id).size() == kSpecialBytes && static_cast<std::uint8_t>(token(id)[0]) == kSpecialByte;
    }
    // The special tokens of a name.
    std::vector<std::uint32_t> special(std::string_view name) const;
    // Bytes that a machine took, special tokens by their names.
    std::string shown(std::string_view bytes) const;
    const std::vector<std::uint32_t>& eos() const { return eos_; }
    const TokenTrie& trie() const { return trie_; }
    const SubtreeAlphabets& subtrees() const { return *subtrees_; }
    const PlainTokens& plain_tokens() const { return *plain_tokens_; }
    std::uint32_t longest() const { return longest_; }  // bytes of the longest token, at least 1
    bool spells_every_byte() const { return spells_every_byte_; }
    // Where the ends of `text` begin with which some token begins, and continues.
    std::vector<std::size_t> open_ends(std::string_view text) const;
    // Fewest tokens that spell `text`; kInfinite if they cannot.
    std::uint32_t fewest_tokens(std::string_view text) const;

private:
    struct Bare {};

    TokenTable(Bare, TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special);

    std::vector<std::uint32_t> starts_;
    std::string text_;                                          // without that of silent tokens
    std::vector<std::pair<std::string, std::uint32_t>> names_;  // of special tokens, sorted
    std::vector<std::uint32_t> eos_;
    std::shared_ptr<const void> owner_;  // of the file that the tries are views of, if they were read
    TokenTrie trie_;
    std::unique_ptr<SubtreeAlphabets> subtrees_;
    std::unique_ptr<PlainTokens> plain_tokens_;
    bool spells_every_byte_ = true;
    std::uint32_t longest_ = 1;
};

}  // namespace guideway
