#include "guideway/vocabulary.h"

#include <algorithm>

#include "guideway/error.h"

namespace guideway {

Vocabulary::Vocabulary(const std::vector<std::string>& tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
                       VocabularyLimits limits)
    : eos_(std::move(eos)), limits_(limits) {
    std::sort(eos_.begin(), eos_.end());
    eos_.erase(std::unique(eos_.begin(), eos_.end()), eos_.end());
    std::vector<bool> silent(tokens.size());
    for (const std::vector<std::uint32_t>* ids : {static_cast<const std::vector<std::uint32_t>*>(&eos_), &special})
        for (std::uint32_t id : *ids) {
            if (id >= tokens.size()) {
                const std::string all = std::to_string(tokens.size());
                throw Error(ErrorKind::argument, "id " + std::to_string(id) + " is not in a vocabulary of " + all + " tokens");
            }
            silent[id] = true;
        }
    own_starts_.reserve(tokens.size() + 1);
    own_starts_.push_back(0);
    for (std::uint32_t id = 0; id < tokens.size(); ++id) {
        const std::string& bytes = tokens[id];
        // The trie counts depths in 16 bits.
        if (bytes.size() > 60'000) throw Error(ErrorKind::argument, "token " + std::to_string(id) + " is longer than 60,000 bytes");
        if (own_text_.size() + bytes.size() > 0xffffffff) throw Error(ErrorKind::argument, "a vocabulary of more than 4 GiB");
        if (!silent[id]) own_text_.insert(own_text_.end(), bytes.begin(), bytes.end());
        own_starts_.push_back(static_cast<std::uint32_t>(own_text_.size()));
    }
    text_ = own_text_;
    starts_ = own_starts_;
    std::vector<Suffix> suffixes;
    std::array<bool, 256> single{};
    for (std::uint32_t id = 0; id < size(); ++id) {
        const std::string_view bytes = token(id);
        if (bytes.empty()) continue;
        if (bytes.size() == 1) single[static_cast<std::uint8_t>(bytes[0])] = true;
        longest_ = std::max(longest_, static_cast<std::uint32_t>(bytes.size()));
        suffixes.push_back({bytes, id});
    }
    trie_ = Trie::of(suffixes);
    subtrees_ = std::make_unique<Subtrees>(trie_);
    spells_every_byte_ = std::all_of(single.begin(), single.end(), [](bool b) { return b; });
}

bool Vocabulary::is_eos(std::uint32_t id) const { return std::binary_search(eos_.begin(), eos_.end(), id); }

std::shared_ptr<Store> Vocabulary::store() const {
    const std::lock_guard guard(store_lock_);
    bool full = false;
    if (store_) {
        const std::shared_lock inner(store_->lock);
        full = store_->pool.bytes() > limits_.store_bytes || store_->pool.size() > limits_.max_states / 2;
    }
    if (full || !store_) store_ = std::make_shared<Store>(*this, limits_);
    return store_;
}

std::uint32_t Vocabulary::fewest_tokens(std::string_view text) const {
    std::vector<std::uint32_t> from(text.size() + 1, kInfinite);  // from[i]: fewest tokens that spell text[i:]
    from[text.size()] = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
        std::uint32_t node = trie_.child(0, static_cast<std::uint8_t>(text[i]));
        for (std::size_t j = i + 1; node; ++j) {
            if (from[j] != kInfinite && !trie_.tokens_at(node).empty()) from[i] = std::min(from[i], from[j] + 1);
            if (j == text.size()) break;
            node = trie_.child(node, static_cast<std::uint8_t>(text[j]));
        }
    }
    return from[0];
}

}  // namespace guideway
