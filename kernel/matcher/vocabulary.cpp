#include "guideway/matcher/vocabulary.h"

#include <algorithm>
#include <utility>

#include "guideway/base/error.h"
#include "guideway/matcher/matcher.h"

namespace guideway {

VocabularyLimits Vocabulary::checked(VocabularyLimits limits) {
    if (limits.max_states > kMaxExprs)
        throw Error(ErrorKind::argument,
                    "max_states is " + std::to_string(limits.max_states) + "; it can be at most " + std::to_string(kMaxExprs));
    return limits;
}

Vocabulary::Vocabulary(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
                       VocabularyLimits limits)
    : TokenTable(std::move(tokens), std::move(eos), special), limits_(checked(limits)) {}

Vocabulary::Vocabulary(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
                       std::span<const std::uint64_t> file, std::shared_ptr<const void> owner, VocabularyLimits limits)
    : TokenTable(std::move(tokens), std::move(eos), special, file, std::move(owner)), limits_(checked(limits)) {}

bool Vocabulary::is_full(Store& store) const {
    const SharedHold guard(store);
    return store.pool.bytes() + store.leaves.bytes() + store.engine.kept_bytes() > limits_.store_bytes ||
           store.pool.size() > limits_.max_states / 2 || store.engine.ids().is_short();
}

// A store is made, examined and released outside of the lock: a fork takes that lock and those of all stores.
std::shared_ptr<Store> Vocabulary::store() const {
    std::shared_ptr<Store> now;
    {
        const std::lock_guard guard(lock_);
        now = store_;
    }
    if (now && !is_full(*now)) return now;
    const auto made = std::make_shared<Store>(*this, limits_);
    std::vector<std::weak_ptr<CurrentAutomaton>> current;
    std::vector<std::shared_ptr<const void>> gone;  // destroyed after the lock is released
    const std::lock_guard guard(lock_);
    if (store_ != now) return store_;  // another thread was first
    store_ = made;
    current.swap(current_);
    for (const auto& place : current)
        if (const auto found = place.lock()) {
            current_.push_back(found);
            gone.push_back(found);
            if (found->automaton && found->automaton->store() != made) gone.push_back(std::move(found->automaton));
        }
    return made;
}

std::shared_ptr<Store> Vocabulary::store_apart() const {
    VocabularyLimits limits = limits_;
    limits.memo_bytes /= kMostApart;
    return std::make_shared<Store>(*this, limits);
}

void Vocabulary::keep(const std::shared_ptr<CurrentAutomaton>& current) const {
    const std::lock_guard guard(lock_);
    if (current_.size() == current_.capacity()) std::erase_if(current_, [](const auto& place) { return place.expired(); });
    current_.push_back(current);
}

void Vocabulary::keep_apart(const std::shared_ptr<CurrentAutomaton>& current) const {
    std::vector<std::shared_ptr<const void>> gone;  // destroyed after the lock is released
    const std::lock_guard guard(lock_);
    std::erase_if(apart_, [&](const auto& place) {
        const auto found = place.lock();
        gone.push_back(found);
        return !found || !found->automaton || found == current;
    });
    apart_.push_back(current);
    while (apart_.size() > kMostApart) {
        if (const auto oldest = apart_.front().lock()) {
            gone.push_back(oldest);
            gone.push_back(std::move(oldest->automaton));
        }
        apart_.erase(apart_.begin());
    }
}

}  // namespace guideway
