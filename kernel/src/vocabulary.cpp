#include "guideway/vocabulary.h"

#include <algorithm>
#include <array>

#include "guideway/error.h"
#include "guideway/matcher.h"

namespace guideway {

namespace {

std::string block_of(const std::vector<std::string>& tokens) {
    TokenBlockWriter made(tokens.size());
    for (const std::string& token : tokens) made.add(token);
    return made.take();
}

}  // namespace

Vocabulary::Vocabulary(Bare, TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
                       VocabularyLimits limits)
    : starts_(std::move(tokens.starts)), eos_(std::move(eos)), limits_(limits) {
    const auto sort = [](std::vector<std::uint32_t>& ids) {
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    };
    sort(eos_);
    std::vector<std::uint32_t> silent = special;
    silent.insert(silent.end(), eos_.begin(), eos_.end());
    sort(silent);
    if (!silent.empty() && silent.back() >= size()) {
        const std::string all = std::to_string(size());
        throw Error(ErrorKind::argument, "id " + std::to_string(silent.back()) + " is not in a vocabulary of " + all + " tokens");
    }
    // Between two silent tokens that have bytes, the text is taken in one piece.
    std::uint32_t from = 0, gone = 0, moved = 0;
    const auto keep_up_to = [&](std::uint32_t id, std::uint32_t at) {
        text_.append(tokens.text.substr(from, at - from));
        for (; gone && moved < id; ++moved) starts_[moved] -= gone;
        moved = id;
    };
    for (const std::uint32_t id : silent) {
        const std::uint32_t begin = starts_[id], end = starts_[id + 1];
        if (begin == end) continue;
        keep_up_to(id + 1, begin);
        from = end;
        gone += end - begin;
    }
    keep_up_to(size() + 1, static_cast<std::uint32_t>(tokens.text.size()));
    std::array<bool, 256> single{};
    for (std::uint32_t id = 0; id < size(); ++id) {
        const std::uint32_t length = starts_[id + 1] - starts_[id];
        longest_ = std::max(longest_, length);
        if (length == 1) single[static_cast<std::uint8_t>(text_[starts_[id]])] = true;
        // The trie counts depths in 16 bits.
        if (length > 60'000) throw Error(ErrorKind::argument, "token " + std::to_string(id) + " is longer than 60,000 bytes");
    }
    spells_every_byte_ = std::all_of(single.begin(), single.end(), [](bool b) { return b; });
}

Vocabulary::Vocabulary(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special, VocabularyLimits limits)
    : Vocabulary(Bare{}, std::move(tokens), std::move(eos), special, limits) {
    std::vector<Suffix> suffixes;
    for (std::uint32_t id = 0; id < size(); ++id)
        if (const std::string_view bytes = token(id); !bytes.empty()) suffixes.push_back({bytes, id});
    trie_ = Trie::of(suffixes);
    subtrees_ = std::make_unique<Subtrees>(trie_);
}

Vocabulary::Vocabulary(const std::vector<std::string>& tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
                       VocabularyLimits limits)
    : Vocabulary(TokenBlock(block_of(tokens)), std::move(eos), special, limits) {}

bool Vocabulary::is_eos(std::uint32_t id) const { return std::binary_search(eos_.begin(), eos_.end(), id); }

std::shared_ptr<Store> Vocabulary::store() const {
    std::shared_ptr<Store> made, left;
    std::vector<std::weak_ptr<Standing>> standing;
    {
        const std::lock_guard guard(store_lock_);
        bool full = false;
        if (store_) {
            const std::shared_lock inner(store_->lock);
            full = store_->pool.bytes() > limits_.store_bytes || store_->pool.size() > limits_.max_states / 2;
        }
        if (store_ && !full) return store_;
        made = std::make_shared<Store>(*this, limits_);
        left = std::exchange(store_, made);
        standing = std::exchange(standing_, {});
    }
    for (const auto& place : standing)
        if (const auto found = place.lock()) {
            keep(found);
            std::shared_ptr<const Automaton> gone;  // until the lock is given back
            const std::lock_guard guard(found->lock);
            if (found->automaton && found->automaton->store() != made) gone.swap(found->automaton);
        }
    return made;
}

void Vocabulary::keep(const std::shared_ptr<Standing>& standing) const {
    const std::lock_guard guard(store_lock_);
    if (standing_.size() == standing_.capacity()) std::erase_if(standing_, [](const auto& place) { return place.expired(); });
    standing_.push_back(standing);
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
