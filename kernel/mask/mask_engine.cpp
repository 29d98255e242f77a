// The caches of automata, and masks joined from their parts.
#include "guideway/mask/mask_engine.h"

#include <algorithm>

#include "guideway/base/bit_row.h"
#include "guideway/base/simd.h"
#include "guideway/base/thread_scratch.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

MaskEngine::MaskEngine(const TokenTable& vocabulary, std::size_t budget, const Tuning& tuning, Fuel& work)
    : budget_(budget), fuel_(work), results_(vocabulary, tuning, work, *this), summaries_(results_), punctuation_(results_),
      builder_(results_, summaries_, punctuation_), empty_idle_above_(budget / kCacheShareDivisor) {}

AutomatonId MaskEngine::next_automaton() {
    if (free_ids_.empty()) {
        const AutomatonId added = caches_.next();
        caches_.push_back(nullptr);
        free_ids_.reserve(caches_.capacity());  // so that `remove_automaton` allocates no memory
        free_ids_.push_back(added);
    }
    const AutomatonId id = free_ids_.back();
    caches_[id] = std::make_unique<AutomatonCache>();
    free_ids_.pop_back();
    return id;
}

// The token sets of its masks are kept until `drop_before` or `clear`.
void MaskEngine::remove_automaton(AutomatonId automaton) noexcept {
    cache_bytes_ -= caches_[automaton]->counted_bytes;
    caches_[automaton].reset();
    current_cache_ = nullptr;
    free_ids_.push_back(automaton);
}

// Memory is released before a mask is computed. The caches of this automaton are emptied only with those of all others.
void MaskEngine::begin_use(AutomatonId automaton) {
    if (current_cache_) recount_bytes(*current_cache_);  // an error may have left it uncounted
    current_cache_ = caches_[automaton].get();
    current_cache_->touch(++automaton_clock_);
    trim();
    current_cache_->touch(automaton_clock_);  // if its caches were emptied, its time of use was lost, too
}

void MaskEngine::recount_bytes(AutomatonCache& cache) {
    const std::size_t now = cache.bytes();
    cache_bytes_ += now - cache.counted_bytes;
    cache.counted_bytes = now;
}

void MaskEngine::recount_bytes(AutomatonId automaton) { recount_bytes(*caches_[automaton]); }

// Empties the caches of idle automata, the least recently used first, until those of all automata have at most `most` bytes.
void MaskEngine::empty_idle_caches(std::size_t most) {
    std::vector<std::pair<std::uint64_t, AutomatonCache*>> idle;
    for (const auto& one : caches_)
        if (one && one->counted_bytes) idle.emplace_back(static_cast<std::uint64_t>(one->last_use), one.get());
    std::sort(idle.begin(), idle.end());
    for (const auto& [last_use, one] : idle) {
        if (cache_bytes_ <= most || last_use + kRecentUses > automaton_clock_) return;
        cache_bytes_ -= one->counted_bytes;
        one->empty_except_indexes();
        one->state_sets.empty_except_large();
        one->machine.empty_except_large();
    }
}

void MaskEngine::empty_caches() {
    for (const auto& one : caches_)
        if (one) one->empty_except_indexes();
    cache_bytes_ = 0;
}

void MaskEngine::clear() {
    results_.clear();
    summaries_.clear();
    punctuation_.clear();
    warm_leaves_.clear();
    empty_caches();
}

void MaskEngine::trim() {
    if (cache_bytes_ > empty_idle_above_) {
        const std::size_t some = budget_ / kCacheShareDivisor / 4;
        empty_idle_caches(3 * some);
        empty_idle_above_ = std::max(4 * some, cache_bytes_ + some);  // if all are in use, the check is not repeated at each mask
    }
    if (bytes() <= budget_) return;
    std::vector<std::uint32_t> times;
    results_.append_last_uses(times);
    summaries_.append_last_uses(times);
    if (!times.empty()) {
        auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        drop_before(*middle + 1);
    }
    if (bytes() > budget_) clear();
}

// Removes the results that were not looked up since, and the token sets and suffix tries that no other result needs.
void MaskEngine::drop_before(std::uint32_t time) {
    empty_caches();
    std::vector<bool> sets, tries(results_.suffix_tries().ids());
    results_.drop_before(time, tries);
    summaries_.drop_before(time, sets, tries);
    punctuation_.clear();
    warm_leaves_.clear();
    results_.sweep(sets, tries);
}

// The mask of a leaf is cached with register 0, for all texts that were read. If a mask depended on the text, the entry
// of register 0 is marked (`context_dependent`), and masks are cached by register. An entry that is only a marker has `run` =
// kNoTokens.
MaskEngine::Mask* MaskEngine::find(const Machine& machine, const AutomatonCache& cache, const Config& c) {
    if (!machine.is_leaf(c)) return cache.masks.find(c);
    Mask* known = cache.masks.find({c.node, c.state, {}, c.parent});
    if (known && known->context_dependent && c.regs != Register{}) known = cache.masks.find(c);
    return known && known->run != kNoTokens ? known : nullptr;
}

std::optional<bool> MaskEngine::fill_known(AutomatonId automaton, const StateSet& state_set, std::span<std::uint32_t> row) const {
    const AutomatonCache& from = *caches_[automaton];
    const auto masks = from.masks_of(state_set);
    if (masks.empty()) return std::nullopt;
    from.touch(automaton_clock_);
    bool accepting = false;
    for (const Mask* one : masks) accepting |= one->accepting;
    write(from, masks, row);
    results_.counters.hits.fetch_add(1, std::memory_order_relaxed);
    return accepting;
}

std::optional<bool> MaskEngine::accepting_known(AutomatonId automaton, const StateSet& state_set) const {
    const auto masks = caches_[automaton]->masks_of(state_set);
    if (masks.empty()) return std::nullopt;
    return std::any_of(masks.begin(), masks.end(), [](const Mask* one) { return one->accepting; });
}

bool MaskEngine::fill(Machine& machine, AutomatonId automaton, const StateSet& state_set, std::span<std::uint32_t> row) {
    if (const auto known = fill_known(automaton, state_set, row)) return *known;
    begin_use(automaton);
    bool accepting = false;
    filled_.clear();
    for (const Config& c : state_set.configs()) {
        filled_.push_back(&mask(machine, c));
        accepting |= filled_.back()->accepting;
    }
    put_first(filled_);
    write(*current_cache_, filled_, row);
    current_cache_->keep_masks(state_set, filled_);
    recount_bytes(*current_cache_);
    return accepting;
}

// Puts a mask that is stored as a whole row first, if there is one: the first is copied, the others are joined.
void MaskEngine::put_first(std::span<Mask*> masks) const {
    if (masks.empty()) return;
    const auto listed = [&](const Mask* one) { return sets()[one->run].form == TokenSet::Form::sparse; };
    if (listed(masks.front()))
        if (const auto whole = std::find_if_not(masks.begin(), masks.end(), listed); whole != masks.end()) std::swap(masks.front(), *whole);
}

void MaskEngine::write(const AutomatonCache& from, std::span<Mask* const> masks, std::span<std::uint32_t> row) const {
    if (masks.empty()) return clear_row(row);
    write(from, *masks.front(), kNoTokens, row);
    for (const Mask* one : masks.subspan(1)) write(from, *one, masks.front()->run, row);
}

// Adds a mask to a row. Its `cleared` tokens are removed only if no earlier mask set them. `before`: the token set `run` of the
// first mask in the row, or kNoTokens if the row has undefined content.
void MaskEngine::write(const AutomatonCache& from, const Mask& mask, TokenSetId before, std::span<std::uint32_t> row) const {
    if (before == kNoTokens || sets()[mask.run].form != TokenSet::Form::delta) write_parts(from, mask, before, row);
    else {
        std::vector<std::uint32_t>& set_before = thread_scratch<MaskEngine, std::uint32_t>();
        for (const std::uint32_t t : sets()[mask.run].cleared())
            if (has_bit(row, t)) set_before.push_back(t);
        write_parts(from, mask, before, row);
        set_bits(row, set_before);
    }
    if (mask.verified != kNoTokens) sets().merge(mask.verified, row);
}

// A mask with the same base as the first one only restores what that one cleared.
void MaskEngine::write_parts(const AutomatonCache& from, const Mask& mask, TokenSetId before, std::span<std::uint32_t> row) const {
    if (before == kNoTokens) sets().write(mask.run, row);
    else if (sets().delta_base(before) == sets().delta_base(mask.run)) sets().restore(before, row);
    else sets().merge(mask.run, row);
    std::uint32_t part = mask.parts.at;
    for (const std::uint32_t end = part + mask.parts.sets; part != end; ++part)
        if (const std::uint32_t one = from.parts[part]; one & AutomatonCache::kOneToken) set_bit(row, one & ~AutomatonCache::kOneToken);
        else sets().merge(TokenSetId{one}, row);
    for (const std::uint32_t end = part + 2 * mask.parts.spans; part != end; part += 2)
        set_bits(row, from.tokens({from.parts[part], from.parts[part + 1]}));
    sets().change(mask.run, row);
}

MaskEngine::Mask& MaskEngine::mask(Machine& machine, const Config& config) {
    if (Mask* known = find(machine, *current_cache_, config)) {
        results_.counters.hits.fetch_add(1, std::memory_order_relaxed);
        return *known;
    }
    Mask made;
    builder_.build(*current_cache_, machine, config, made);
    made.accepting = machine.accepting(config);
    Config place = config;
    if (machine.is_leaf(config) && config.regs != Register{}) {
        const Config any{config.node, config.state, {}, config.parent};
        Mask* marker = current_cache_->masks.find(any);
        if (!made.context_dependent && (!marker || !marker->context_dependent)) place = any;
        if (made.context_dependent && !marker) {
            marker = &current_cache_->masks.add(any, {});
            marker->run = kNoTokens;
        }
        if (made.context_dependent) marker->context_dependent = true;  // `find` then looks for the mask of the register
    }
    Mask& kept = current_cache_->masks.get(place);
    made.context_dependent |= kept.context_dependent;
    return kept = made;
}

}  // namespace guideway
