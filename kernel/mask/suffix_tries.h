// Tries of the rests of tokens after a component that has accepted their beginnings. Each is kept once.
//
// The empty trie is kNoTrie, which only `contains_any` accepts as an argument. Tries that are stored with their own nodes have equal
// ids if they are equal. A trie that is a list of subtrees (`tops`) equals only the same list. Ids stay valid until `sweep` is informed
// that no caller needs them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "guideway/base/dcheck.h"
#include "guideway/base/fuel.h"
#include "guideway/mask/ids.h"
#include "guideway/mask/leaf_walk.h"
#include "guideway/vocabulary/token_trie.h"

namespace guideway {

class SuffixTries {
public:
    // `longest`: bytes of the vocabulary's longest token.
    SuffixTries(const TokenTrie& trie, std::uint32_t longest, Fuel& work)
        : trie_(trie), longest_(longest), fuel_(work), all_{&trie, {{1, trie.size(), 0}}} {}

    // Its nodes. The reference is valid until `sweep` or `clear`.
    const TrieForest& forest(TrieId id) const { return id == kVocabularyTrie ? all_ : stored(id).forest; }
    // Bytes of its longest text.
    std::uint32_t reach(TrieId id) const { return id == kVocabularyTrie ? longest_ : stored(id).reach; }
    // The subtrees at these nodes of a trie, joined; kNoTrie if there are none. Sorts the nodes.
    TrieId after_exits(const TokenTrie& x, std::vector<std::uint32_t>& exits);
    // The id of a trie.
    TrieId of(TokenTrie trie);
    // The sub-trie of tokens whose bytes before the first '"' are all in `bytes`; kVocabularyTrie if it has more than
    // `most` nodes.
    TrieId of_alphabet(const ByteSet& bytes, std::uint32_t most);
    // Whether the nodes of `of_alphabet` are more than `most`.
    bool alphabet_exceeds(const ByteSet& bytes, std::uint32_t most) const;
    // The union of these tries; kNoTrie if there are none.
    TrieId united(std::span<const TrieId> ids);

    // The same without these tokens (in rising order); kNoTrie if no token is left.
    TrieId without(TrieId id, const std::vector<std::uint32_t>& tokens);

    // Whether it has one of these tokens (in rising order).
    bool contains_any(TrieId id, const std::vector<std::uint32_t>& tokens) const;

    // Removes those whose id is not set in `used`, which has `ids` entries.
    void sweep(const std::vector<bool>& used);
    void clear();
    std::size_t ids() const { return kept_.size() + 1; }  // that of the vocabulary's trie included
    std::size_t bytes() const { return bytes_; }

private:
    // Calls f(node) for the nodes of `of_alphabet`, from the top down, as long as it returns true.
    template <class F>
    void each_of_alphabet(const ByteSet& bytes, F&& f) const;

    struct SuffixTrie {
        TokenTrie trie;
        std::vector<std::uint32_t> tops;  // if not empty: the trie is these subtrees of the vocabulary's trie, and `trie` is unused
        std::uint32_t reach = 0;          // bytes of its longest text
        TrieForest forest{};              // its nodes
        std::size_t bytes() const {
            return trie.bytes() + tops.size() * 4 + forest.parts.size() * sizeof(TrieForest::Part) + sizeof(SuffixTrie) + 64;
        }
    };

    struct Recent {  // the suffix trie of exits that were merged recently
        const TokenTrie* trie = nullptr;
        std::vector<std::uint32_t> exits;
        TrieId id = kNoTrie;
    };
    static constexpr std::size_t kRecent = 512, kMaxPieces = 32;

    TrieId find_after_exits(const TokenTrie& x, const std::vector<std::uint32_t>& exits);
    TrieId keep(SuffixTrie made);
    const SuffixTrie& stored(TrieId id) const {
        GUIDEWAY_DCHECK(id != kVocabularyTrie && raw(id) <= kept_.size() && kept_[raw(id) - 1]);
        return *kept_[raw(id) - 1];
    }
    struct Spot {  // a node of a trie
        const TokenTrie* trie;
        std::uint32_t node;
        std::uint8_t byte() const { return trie->byte[node]; }
    };
    void spots_of(TrieId id, std::vector<Spot>& spots) const;
    TokenTrie merged(std::vector<Spot> spots, const std::vector<std::uint32_t>& dropped = {});

    const TokenTrie& trie_;
    std::uint32_t longest_;
    Fuel& fuel_;
    TrieForest all_;
    std::vector<std::unique_ptr<SuffixTrie>> kept_;  // that of an id is at its number less one
    std::vector<TrieId> free_;
    std::vector<Recent> recent_ = std::vector<Recent>(kRecent);  // by a hash of the exits
    std::unordered_multimap<std::uint64_t, TrieId> ids_;
    std::size_t bytes_ = 0;
};

}  // namespace guideway
