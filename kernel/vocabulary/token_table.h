// The tokens of a model as bytes, and the tries and tables that are built from them once.
//
// A token without bytes is never in a mask. The bytes of a special token are its name: it is legal where the grammar has a special
// token of that name. In tries it has the text `special_text`, whose first byte occurs in no UTF-8 text; ordinary tokens with that
// byte are never legal. End-of-sequence tokens are special, and legal when the text is complete.
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
// The text of a special token in tries: kSpecialByte and its id.
std::string special_text(std::uint32_t id);

class TokenTable {
public:
    // Throws Error(argument) for ids out of range or tokens longer than 60,000 bytes.
    TokenTable(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special);
    // The same from a result of `file()` for an equal table, in this process or another of the same byte order, instead
    // of building the tables. The file is not copied; `owner` keeps it alive. Throws Error(argument) if it belongs to other
    // tokens or is malformed.
    TokenTable(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
               std::span<const std::uint64_t> file, std::shared_ptr<const void> owner);
    TokenTable(const TokenTable&) = delete;
    TokenTable& operator=(const TokenTable&) = delete;

    // The tables that take long to build, as one block.
    std::vector<std::uint64_t> file() const;
    std::uint32_t size() const { return static_cast<std::uint32_t>(starts_.size() - 1); }
    std::uint32_t words() const { return (size() + 31) / 32; }
    // Empty for a token that is never legal.
    std::string_view token(std::uint32_t id) const { return tokens()[id]; }
    // Loads the position of a token's bytes into the cache of the processor, which rarely holds it.
    void prefetch(std::uint32_t id) const {
#ifdef __GNUC__
        __builtin_prefetch(&starts_[id]);
#else
        static_cast<void>(id);
#endif
    }
    TokenView tokens() const { return {starts_, text_.data()}; }
    bool is_eos(std::uint32_t id) const;
    // Whether it is a special token with a name. A grammar can refer to it by its id.
    bool is_special(std::uint32_t id) const {
        return id < size() && token(id).size() == kSpecialBytes && static_cast<std::uint8_t>(token(id)[0]) == kSpecialByte;
    }
    // The special tokens of a name.
    std::vector<std::uint32_t> special(std::string_view name) const;
    // The bytes of a text that a machine has read, with special tokens as their names, and without the beginning of one at the end.
    std::string shown(std::string_view bytes) const;
    const std::vector<std::uint32_t>& eos() const { return eos_; }
    const TokenTrie& trie() const { return trie_; }
    const SubtreeAlphabets& subtrees() const { return *subtrees_; }
    const PlainTokens& plain_tokens() const { return *plain_tokens_; }
    std::uint32_t longest() const { return longest_; }  // bytes of the longest token, at least 1
    bool spells_every_byte() const { return spells_every_byte_; }
    // The positions p where text[p:] is a proper prefix of some token.
    std::vector<std::size_t> open_ends(std::string_view text) const;
    // Fewest tokens that spell `text`; kInfinite if they cannot.
    std::uint32_t fewest_tokens(std::string_view text) const;

private:
    struct Bare {};

    TokenTable(Bare, TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special);

    std::vector<std::uint32_t> starts_;
    std::string text_;  // bytes of all tokens: special ones as `special_text`, those that are never legal without bytes
    std::vector<std::pair<std::string, std::uint32_t>> names_;  // of special tokens, sorted
    std::vector<std::uint32_t> eos_;
    std::shared_ptr<const void> owner_;  // of the file, if the tables are views of one
    TokenTrie trie_;
    std::unique_ptr<SubtreeAlphabets> subtrees_;
    std::unique_ptr<PlainTokens> plain_tokens_;
    bool spells_every_byte_ = true;
    std::uint32_t longest_ = 1;
};

}  // namespace guideway
