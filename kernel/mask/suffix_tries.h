// Tries of the rests of tokens after a component that has accepted their beginnings. Each is kept once.
//
// Number 0 has two meanings. As an argument or in a key, it is the vocabulary's trie (kVocabularyTrie). As a result, it is the
// empty trie (kNoTrie); only `contains_any` also accepts the empty trie as an argument. Tries that are stored with
// their own nodes have equal numbers if they are equal. A trie that is a list of subtrees (`tops`) equals only the same
// list. Numbers stay valid until `sweep` is informed that no caller needs them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "guideway/base/dcheck.h"
#include "guideway/base/fuel.h"
#include "guideway/mask/leaf_walk.h"
#include "guideway/vocabulary/token_trie.h"

namespace guideway {

inline constexpr std::uint32_t kVocabularyTrie = 0, kNoTrie = 0;

class SuffixTries {
public:
    // `longest`: bytes of the vocabulary's longest token.
    SuffixTries(const TokenTrie& trie, std::uint32_t longest, Fuel& work)
        : trie_(trie), longest_(longest), fuel_(work), all_{&trie, {{1, trie.size(), 0}}} {}

    // Its nodes. The reference is valid until `sweep` or `clear`.
    const TrieForest& forest(std::uint32_t id) const {
        GUIDEWAY_DCHECK(id == kVocabularyTrie || (id <= kept_.size() && kept_[id - 1]));
        return id == kVocabularyTrie ? all_ : kept_[id - 1]->forest;
    }
    // Bytes of its longest text.
    std::uint32_t reach(std::uint32_t id) const { return id == kVocabularyTrie ? longest_ : kept_[id - 1]->reach; }
    // The subtrees at these nodes of a trie, joined; kNoTrie if there are none. Sorts the nodes.
    std::uint32_t after_exits(const TokenTrie& x, std::vector<std::uint32_t>& exits);
    // The number of a trie.
    std::uint32_t of(TokenTrie trie);
    // The sub-trie of tokens whose bytes before the first '"' are all in `bytes`; kVocabularyTrie if it has more than
    // `most` nodes.
    std::uint32_t of_alphabet(const ByteSet& bytes, std::uint32_t most);
    // Whether the nodes of `of_alphabet` are more than `most`.
    bool alphabet_exceeds(const ByteSet& bytes, std::uint32_t most) const;
    // The union of these tries; kNoTrie if there are none.
    std::uint32_t united(std::span<const std::uint32_t> ids);

    // The same without these tokens (in rising order); kNoTrie if no token is left.
    std::uint32_t without(std::uint32_t id, const std::vector<std::uint32_t>& tokens);

    // Whether it has one of these tokens (in rising order).
    bool contains_any(std::uint32_t id, const std::vector<std::uint32_t>& tokens) const;

    // Removes those whose number is not set in `used`, which has one more entry than there are numbers.
    void sweep(const std::vector<bool>& used);
    void clear();
    std::size_t count() const { return kept_.size(); }
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
        std::uint32_t id = 0;
    };
    static constexpr std::size_t kRecent = 512, kMaxPieces = 32;

    std::uint32_t find_after_exits(const TokenTrie& x, const std::vector<std::uint32_t>& exits);
    std::uint32_t keep(SuffixTrie made);
    struct Spot {  // a node of a trie
        const TokenTrie* trie;
        std::uint32_t node;
        std::uint8_t byte() const { return trie->byte[node]; }
    };
    void spots_of(std::uint32_t id, std::vector<Spot>& spots) const;
    TokenTrie merged(std::vector<Spot> spots, const std::vector<std::uint32_t>& dropped = {});

    const TokenTrie& trie_;
    std::uint32_t longest_;
    Fuel& fuel_;
    TrieForest all_;
    std::vector<std::unique_ptr<SuffixTrie>> kept_;
    std::vector<std::uint32_t> free_;
    std::vector<Recent> recent_ = std::vector<Recent>(kRecent);  // by a hash of the exits
    std::unordered_multimap<std::uint64_t, std::uint32_t> ids_;
    std::size_t bytes_ = 0;
};

}  // namespace guideway
