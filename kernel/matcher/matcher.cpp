#include "guideway/matcher/matcher.h"

#include <algorithm>
#include <optional>

#include "guideway/base/bit_row.h"
#include "guideway/base/checksum.h"
#include "guideway/base/error.h"
#include "guideway/base/simd.h"
#include "guideway/matcher/completions.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxRemembered = 1 << 14;  // cached digests of masks
constexpr std::uint64_t kFewUnits = 5'000;       // of work; a mask within a budget that took no more is not cached
constexpr std::size_t kValidated = 16;           // tokens that are validated in one lock
constexpr std::uint64_t kMaskSeeds[] = {0x6d61736b, 0x69640001};

// Whether the set has too many configurations for `ConfigsMemo`. Results are then cached by the number of the set.
bool is_large(const StateSet& state_set) { return state_set.count > ConfigsMemo::kMostTogether; }

}  // namespace

// Calls f under the store's lock. If f is interrupted because another thread waits (store_lock.h), it is called again.
// The store keeps partial results. After `most_tries` interruptions, and after each further one, the matcher moves to
// an automaton with a separate store, repeats its tokens there, and f is called again. Matchers that moved from
// one automaton share that store, and new matchers begin there (compiled.h), so f can be interrupted there too.
template <class F>
auto Matcher::locked(F&& f) const {
    for (unsigned tries = 0;; ++tries) {
        try {
            const Hold guard(*automaton_->store_, StoreLock::Rank::step);
            return f();
        } catch (const Preempted& preempted) {
            if (preempted.by_process_fork) {
                --tries;
                continue;
            }
        }
        if (tries + 1 >= StoreLock::most_tries()) move_apart();
    }
}

void Matcher::move_apart() const {
    Matcher made(automaton_->apart());
    for (const std::uint32_t token : history_.tokens()) made.advance(token);
    const std::shared_ptr<const Automaton> before = automaton_;  // destroyed after its store's lock is released
    const SharedHold guard(*before->store_);  // a process fork waits for this lock: a child process has both changes, or none
    automaton_ = std::move(made.automaton_);
    history_ = std::move(made.history_);
}

Matcher::Matcher(std::shared_ptr<const Automaton> automaton) : automaton_(std::move(automaton)) {
    if (const StateSet* const start = automaton_->start_.load(std::memory_order_acquire)) history_ = History(*start);
    else locked([&] { history_ = History(automaton_->start()); });
}

bool Matcher::accepting(std::span<const Config> configs) const {
    return std::any_of(configs.begin(), configs.end(), [&](const Config& c) { return automaton_->machine_->accepting(c); });
}

Completions Matcher::completions() const {
    return {*automaton_->vocabulary_, *automaton_->machine_, automaton_->store_->engine, automaton_->id_};
}

// Needs the shared lock. Whether the text may end, if the mask is cached.
std::optional<bool> Matcher::accepting_known() const { return automaton_->store_->engine.accepting_known(automaton_->id_, history_.now()); }

bool Matcher::is_accepting() const {
    if (finished_) return false;
    {
        const SharedHold guard(*automaton_->store_);
        if (const auto known = accepting_known()) return *known;
    }
    return locked([&] { return accepting(history_.now().configs()); });
}

Quotation Matcher::quotation() const {
    if (finished_) return Quotation::none;
    return locked([&] {
        Machine& machine = *automaton_->machine_;
        Quotation found = Quotation::none;
        for (const Config& c : history_.now().configs()) {
            const Quotation one = machine.is_leaf(c) ? quotation_at(machine.pool(), c.expr()) : Quotation::none;
            if (one == Quotation::none || (found != Quotation::none && found != one)) return Quotation::none;
            found = one;
        }
        return found;
    });
}

void Matcher::check_row(std::span<std::uint32_t> row) const {
    const std::uint32_t words = automaton_->vocabulary_->words();
    if (row.size() != words)
        throw Error(ErrorKind::argument,
                    "a mask row has " + std::to_string(words) + " words for this vocabulary, not " + std::to_string(row.size()));
}

std::uint32_t Matcher::checked(std::int64_t id) const {
    const std::uint32_t size = automaton_->vocabulary_->size();
    if (id < 0 || id >= std::int64_t{size})
        throw Error(ErrorKind::token, "token " + std::to_string(id) + " is not in a vocabulary of " + std::to_string(size));
    return static_cast<std::uint32_t>(id);
}

void Matcher::fill_locked(const StateSet& state_set, std::span<std::uint32_t> row) const {
    if (automaton_->store_->engine.fill(*automaton_->machine_, automaton_->id_, state_set, row)) add_ends(row);
}

void Matcher::add_ends(std::span<std::uint32_t> row) const { set_bits(row, automaton_->vocabulary_->eos()); }

void Matcher::fill(std::span<std::uint32_t> row) const {
    if (finished_) {
        clear_row(row);
        return add_ends(row);
    }
    {
        const SharedHold guard(*automaton_->store_);
        if (fill_known(history_.now(), row)) return;
    }
    locked([&] { fill_locked(history_.now(), row); });
}

bool Matcher::fill_known(const StateSet& state_set, std::span<std::uint32_t> row) const {
    const auto may_end = automaton_->store_->engine.fill_known(automaton_->id_, state_set, row);
    if (may_end && *may_end) add_ends(row);
    return may_end.has_value();
}

void Matcher::fill_mask(std::span<std::uint32_t> row) const {
    check_row(row);
    fill(row);
}

void Matcher::fill_draft_masks(std::span<const std::int64_t> tokens, std::span<const std::int64_t> parents,
                               std::span<std::uint32_t> rows) const {
    const std::size_t width = automaton_->vocabulary_->words();
    if (parents.size() != tokens.size() || rows.size() != tokens.size() * width)
        throw Error(ErrorKind::argument, "a draft needs a parent and a row of " + std::to_string(width) + " words for each token");
    std::vector<std::uint32_t> checked_tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (parents[i] < -1 || parents[i] >= static_cast<std::int64_t>(i))
            throw Error(ErrorKind::argument, "the parent of draft token " + std::to_string(i) + " must be an earlier one, or -1");
        checked_tokens.push_back(checked(tokens[i]));
    }
    {
        const SharedHold guard(*automaton_->store_);
        if (fill_drafts(checked_tokens, parents, rows, true)) return;
    }
    locked([&] { fill_drafts(checked_tokens, parents, rows, false); });
}

// `known`: uses only cached results, and returns false if these are not enough.
bool Matcher::fill_drafts(std::span<const std::uint32_t> tokens, std::span<const std::int64_t> parents, std::span<std::uint32_t> rows,
                          bool known) const {
    struct Draft {
        const StateSet* state_set;
        bool legal, finished;
    };
    const std::size_t width = automaton_->vocabulary_->words();
    std::vector<Draft> drafts;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::uint32_t token = tokens[i];
        Draft draft = parents[i] < 0 ? Draft{&history_.now(), true, finished_} : drafts[static_cast<std::size_t>(parents[i])];
        if (draft.legal) {
            if (draft.finished) draft.legal = false;
            else if (known) {
                draft.state_set =
                    automaton_->vocabulary_->is_eos(token) ? nullptr : automaton_->state_sets_->successor(*draft.state_set, token);
                if (!draft.state_set) return false;
            } else if (ends(draft.state_set->configs(), token)) draft.finished = true;
            else if (const StateSet* next = successor(*draft.state_set, token)) draft.state_set = next;
            else draft.legal = false;
        }
        const auto row = rows.subspan(i * width, width);
        if (!draft.legal || draft.finished) clear_row(row);
        if (draft.legal && draft.finished) add_ends(row);
        else if (draft.legal && !known) fill_locked(*draft.state_set, row);
        else if (draft.legal && !fill_known(*draft.state_set, row)) return false;
        drafts.push_back(draft);
    }
    return true;
}

// An end token ends the text only where it is complete: elsewhere it can be a token that the grammar requires by its number.
bool Matcher::ends(std::span<const Config> configs, std::uint32_t token) const {
    return automaton_->vocabulary_->is_eos(token) && accepting(configs);
}

bool Matcher::step_token(Configs& configs, std::uint32_t token) const {
    const std::string_view bytes = automaton_->vocabulary_->token(token);
    Configs& next = automaton_->store_->scratch;
    Machine& machine = *automaton_->machine_;
    for (std::size_t at = 0; at < bytes.size();) {
        if ((at == 0 || bytes[at - 1] == '"') && machine.may_step_inside(configs)) {  // in a set of texts: steps to the next quote at once
            const std::string_view text = bytes.substr(at, bytes.find('"', at) - at);
            if (text.size() > 1 && machine.step_inside(configs, text)) {
                if (configs.empty()) return false;
                at += text.size();
                continue;
            }
        }
        const auto b = static_cast<std::uint8_t>(bytes[at++]);
        if (configs.size() == 1 && machine.step_within(configs[0], b)) continue;
        machine.step_all(configs, b, next);
        configs.swap(next);
        if (configs.empty()) return false;
    }
    return !bytes.empty();
}

// A transition to the same state set, such as that of a word in a string, is not cached: many tokens have one, and the
// step is short.
const StateSet* Matcher::successor(const StateSet& state_set, std::uint32_t token) const {
    StateSetTable& state_sets = *automaton_->state_sets_;
    if (const StateSet* known = state_sets.successor(state_set, token)) return known;
    Configs& configs = automaton_->store_->now;
    configs.assign(state_set.configs().begin(), state_set.configs().end());
    if (!step_token(configs, token)) return nullptr;
    if (std::ranges::equal(configs, state_set.configs())) return &state_set;
    const StateSet& made = state_sets.keep(configs);
    state_sets.note(state_set, token, made);
    return &made;
}

// If no thread holds the lock, one exclusive lock costs less than a look-up under the shared lock that may fail.
// If a thread holds it, a cached transition is used under the shared lock, without waiting for the end of that thread's work.
void Matcher::advance(std::int64_t token) {
    const std::uint32_t id = checked(token);
    automaton_->vocabulary_->prefetch(id);
    if (automaton_->store_->lock.is_taken() && advance_known(id)) return;
    locked([&] { take(id); });
}

// Advances by a cached transition; false: it is not cached.
bool Matcher::advance_known(std::uint32_t token) {
    if (finished_) return false;
    const SharedHold guard(*automaton_->store_);
    if (automaton_->vocabulary_->is_eos(token)) {
        const auto ends = accepting_known();
        if (!ends) return false;
        if (*ends) return finished_ = true;
    }
    const StateSet* const next = automaton_->state_sets_->successor(history_.now(), token);
    if (next) history_.push(*next, token);
    return next != nullptr;
}

void Matcher::take(std::uint32_t token) {
    if (finished_) throw Error(ErrorKind::rejected, "token " + std::to_string(token) + " comes after the end of the text");
    if (ends(history_.now().configs(), token)) {
        finished_ = true;
        return;
    }
    if (const StateSet* next = successor(history_.now(), token)) return history_.push(*next, token);
    if (automaton_->vocabulary_->is_eos(token))
        throw Error(ErrorKind::rejected, "the text is not complete: end token " + std::to_string(token) + " is not legal yet");
    throw Error(ErrorKind::rejected, "token " + std::to_string(token) + " is not legal here");
}

// Takes the lock once, which saves a twentieth of the time of a step. If another thread holds it, `advance` and `fill` take it
// separately: both may find their results in the caches, under the shared lock.
void Matcher::advance_and_fill(std::int64_t token, std::span<std::uint32_t> row) {
    check_row(row);
    const std::uint32_t id = checked(token);
    automaton_->vocabulary_->prefetch(id);
    if (automaton_->store_->lock.is_taken()) {
        advance(token);
        try {
            fill(row);
        } catch (...) {
            rollback(1);
            throw;
        }
        return;
    }
    locked([&] {
        take(id);
        if (finished_) {
            clear_row(row);
            return add_ends(row);
        }
        try {
            fill_locked(history_.now(), row);
        } catch (...) {
            undo(1);
            throw;
        }
    });
}

Matcher::MaskId Matcher::mask_id() const {
    const auto state_set = [&] { return finished_ ? kNoStateSet : history_.now().id; };
    {
        const SharedHold guard(*automaton_->store_);
        const auto& memo = automaton_->cache().mask_ids;
        if (const auto known = memo.find(state_set()); known != memo.end()) return known->second;
    }
    std::vector<std::uint32_t> row(automaton_->vocabulary_->words());
    fill_mask(row);
    const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(row.data()), row.size() * 4);
    const MaskId made{checksum(bytes, kMaskSeeds[0]), checksum(bytes, kMaskSeeds[1])};
    locked([&] {
        auto& memo = automaton_->cache().mask_ids;
        if (memo.size() > kMaxRemembered) memo.clear();
        memo.emplace(state_set(), made);
        automaton_->store_->engine.recount_bytes(automaton_->id_);
    });
    return made;
}

void Matcher::rollback(std::size_t count) {
    if (count > position())
        throw Error(ErrorKind::argument, "cannot roll back " + std::to_string(count) + " of " + std::to_string(position()) + " tokens");
    undo(count);
}

// An end token is not in the history: it is undone by `finished_` alone.
void Matcher::undo(std::size_t count) {
    if (count && finished_) {
        finished_ = false;
        --count;
    }
    if (count) history_.back_to(history_.position() - count);
}

std::size_t Matcher::validate(std::span<const std::int64_t> tokens) const {
    const std::uint32_t size = automaton_->vocabulary_->size();
    const Automaton* walked = nullptr;  // the automaton of `configs`; if `locked` has replaced it, validation begins anew
    Configs configs;
    bool finished = false, legal = true;
    std::size_t taken = 0;
    while (legal && (taken < tokens.size() || !walked))
        locked([&] {
            const bool anew = walked != automaton_.get();
            Configs here = anew ? now() : configs;
            bool ended = anew ? finished_ : finished, good = true;
            std::size_t at = anew ? 0 : taken;
            for (const std::size_t end = std::min(at + kValidated, tokens.size()); good && at < end; at += good) {
                automaton_->store_->pool.fuel().renew();  // the limit on work is for each token
                if (ended || tokens[at] < 0 || tokens[at] >= std::int64_t{size}) good = false;
                else if (const auto token = static_cast<std::uint32_t>(tokens[at]); ends(here, token)) ended = true;
                else good = step_token(here, token);
            }
            walked = automaton_.get();
            configs = std::move(here);
            finished = ended;
            legal = good;
            taken = at;
        });
    return taken;
}

std::string Matcher::forced_bytes() const {
    if (finished_) return {};
    return automaton_->vocabulary_->shown(locked([&] { return completions().forced(history_.now()); }));
}

// Takes the longest token again and again. Stops where a legal token could reach past the end of the forced bytes: the
// tokenizer may join the last forced bytes to what follows.
std::vector<std::uint32_t> Matcher::forced_tokens() const {
    if (finished_) return {};
    const Vocabulary& vocabulary = automaton_->vocabulary();
    const std::string forced = locked([&] { return completions().forced(history_.now()); });
    std::vector<std::uint32_t> tokens;
    for (std::size_t at = 0; at < forced.size();) {
        std::uint32_t node = vocabulary.trie().child(0, static_cast<std::uint8_t>(forced[at]));
        std::optional<std::uint32_t> best;
        std::size_t best_end = at, reached = at;
        while (node) {
            ++reached;
            if (const auto here = vocabulary.trie().tokens_at(node); !here.empty()) {
                best = here.front();
                best_end = reached;
            }
            if (reached == forced.size()) break;
            node = vocabulary.trie().child(node, static_cast<std::uint8_t>(forced[reached]));
        }
        const bool could_be_longer = node && reached == forced.size() && vocabulary.trie().end[node] > node + 1;
        if (!best || could_be_longer) break;
        tokens.push_back(*best);
        at = best_end;
    }
    return tokens;
}

std::string Matcher::completion() const {
    if (finished_) return {};
    return automaton_->vocabulary_->shown(locked([&] { return completions().text(now()); }));
}

std::uint32_t Matcher::tokens_to_finish() const {
    if (finished_) return 0;
    return locked([&] { return needed(); });
}

bool Matcher::fill_mask_within(std::span<std::uint32_t> row, std::uint32_t left) const {
    check_row(row);
    return locked([&] { return fill_within(row, left).fits; });
}

Matcher::Fit Matcher::fill_masks_within(std::span<std::uint32_t> row, std::span<std::uint32_t> whole, std::uint32_t left) const {
    check_row(row);
    check_row(whole);
    return locked([&] {
        const Filled filled = fill_within(row, left);
        if (!filled.fits) return Fit::none;
        if (filled.is_whole) return Fit::all;
        fill_locked(history_.now(), whole);
        return std::ranges::equal(row, whole) ? Fit::all : Fit::some;
    });
}

std::uint32_t Matcher::needed() const {
    if (!is_large(history_.now())) return completions().tokens(now());
    auto& memo = automaton_->cache().large_finish;
    const StateSetId id = history_.now().id;
    if (const auto* known = memo.find(id)) return *known;
    const std::uint32_t found = completions().tokens(now());
    memo.keep(id, found);
    automaton_->store_->engine.recount_bytes(automaton_->id_);
    return found;
}

Matcher::Filled Matcher::fill_within(std::span<std::uint32_t> row, std::uint32_t left) const {
    Configs configs = now();
    const std::uint32_t least = finished_ ? kInfinite : needed();
    if (finished_ || least > left) {
        clear_row(row);
        return {.fits = false, .is_whole = false};
    }
    if (left == 1 && least == 1) {  // only an end token fits
        clear_row(row);
        add_ends(row);
        return {.fits = true, .is_whole = false};
    }
    fill_locked(history_.now(), row);
    automaton_->machine_->drop_irrelevant_texts(configs, automaton_->vocabulary_->longest());
    AutomatonCache& cache = automaton_->cache();
    const StateSetId id = history_.now().id;
    const auto known_worst = [&]() -> std::optional<std::uint32_t> {
        if (!is_large(history_.now())) return cache.worst.find(configs);
        const std::uint32_t* found = cache.large_worst.find(id);
        return found ? std::optional(*found) : std::nullopt;
    };
    if (const auto known = known_worst(); known && sum(*known, 1) <= left) return {.fits = true, .is_whole = true};
    if (const auto* known = cache.within.find(budget_key(id, left))) {
        std::ranges::copy(*known, row.begin());
        return {.fits = true, .is_whole = false};
    }
    const Fuel& work = automaton_->store_->pool.fuel();
    const std::uint64_t before = work.left();
    const std::uint32_t worst = completions().keep_within(configs, row, left);
    if (accepting(configs)) add_ends(row);  // `keep_within` removes an end token that the grammar can also require by its number
    if (before - work.left() > kFewUnits && sum(worst, 1) > left) cache.within.keep(budget_key(id, left), {row.begin(), row.end()});
    if (is_large(history_.now())) cache.large_worst.keep(id, worst);
    else cache.worst.keep(std::move(configs), worst);
    automaton_->store_->engine.recount_bytes(automaton_->id_);
    return {.fits = true, .is_whole = sum(worst, 1) <= left};
}

}  // namespace guideway
