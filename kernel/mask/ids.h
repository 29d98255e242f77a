// Ids of cached data that the masks of all grammars share.
#pragma once

#include <cstdint>

#include "guideway/base/id.h"

namespace guideway {

enum class TokenSetId : std::uint32_t {};  // token_sets.h
inline constexpr TokenSetId kNoTokens{0xffffffff};

enum class TrieId : std::uint32_t {};         // suffix_tries.h
inline constexpr TrieId kVocabularyTrie{0};   // the trie of all tokens
inline constexpr TrieId kNoTrie{0xffffffff};  // nothing is left

}  // namespace guideway
