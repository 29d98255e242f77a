// The caches of one automaton: masks and their parts, which are computed again from runs (mask_engine.h) after they were
// removed; and the indexes of its state sets, stacks and records, which are filled again in use.
//
// Each automaton has separate tables: they are small enough for the caches of the processor, and those of the automaton that
// was not used for the longest time can be emptied alone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/base/flat_map.h"
#include "guideway/base/page_arena.h"
#include "guideway/grammar/machine.h"
#include "guideway/grammar/state_sets.h"
#include "guideway/mask/completion_cache.h"
#include "guideway/mask/ids.h"

namespace guideway {

enum class AutomatonId : std::uint32_t {};  // an automaton of a store

// The key of a cached result: a suffix trie (suffix_tries.h), a component and its state. `variant` of an object or
// array: its register; 0 (key indexes) or kAnyRegister (summaries) where the result holds for all registers. `variant` of a
// sequence: 0. `variant` of a leaf: 1 if the result over the vocabulary is stored without a base (`bare` in
// leaf_results.h), else 0. The text that a leaf has read is not in the key: tokens that depend on it are
// `context_dependent`.
struct ResultKey {
    TrieId trie;
    ComponentId component;
    std::uint32_t state, variant;
    friend bool operator==(const ResultKey&, const ResultKey&) = default;
};
struct ResultKeyHash {
    std::size_t operator()(const ResultKey& k) const {
        return static_cast<std::size_t>(mix(std::uint64_t{raw(k.trie)} << 32 | raw(k.component), std::uint64_t{k.state} << 32 | k.variant));
    }
};

// Maps configurations to numbers. When the maximum number of entries is reached, all are dropped.
class ConfigsMemo {
public:
    static constexpr std::size_t kMostTogether = 32;  // maximum number of configurations of an entry

    std::optional<std::uint32_t> find(const Configs& configs) const {
        const auto known = known_.find(configs);
        return known == known_.end() ? std::nullopt : std::optional(known->second);
    }
    // Sets of more than `kMostTogether` configurations are not kept.
    void keep(Configs&& configs, std::uint32_t number) {
        if (configs.size() > kMostTogether) return;
        if (known_.size() >= kMost) {
            known_.clear();
            bytes_ = 0;
        }
        const std::size_t bytes = kEntryBytes + configs.capacity() * sizeof(Config);
        if (known_.insert_or_assign(std::move(configs), number).second) bytes_ += bytes;
    }
    std::size_t bytes() const { return bytes_; }

private:
    static constexpr std::size_t kMost = std::size_t{1} << 14, kEntryBytes = 80;

    std::unordered_map<Configs, std::uint32_t, ConfigsHash> known_;
    std::size_t bytes_ = 0;
};

// Results by a key, such as the number of a state set: a bounded number of bytes. All are dropped when the limit is reached.
template <class Key, class Value>
class ResultMemo {
public:
    const Value* find(Key key) const {
        const auto known = known_.find(key);
        return known == known_.end() ? nullptr : &known->second;
    }
    void keep(Key key, Value value) {
        const std::size_t bytes = kEntryBytes + size_of(value);
        if (bytes_ + bytes > kMaxBytes) {
            known_.clear();
            bytes_ = 0;
        }
        if (known_.try_emplace(key, std::move(value)).second) bytes_ += bytes;
    }
    std::size_t bytes() const { return bytes_; }

private:
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 20, kEntryBytes = 80;
    static std::size_t size_of(const Value& value) {
        if constexpr (requires { value.size(); }) return value.size() * sizeof(value[0]);
        else return 0;
    }

    std::unordered_map<Key, Value> known_;
    std::size_t bytes_ = 0;
};

// The key of a state set and a token budget.
inline std::uint64_t budget_key(StateSetId state_set, std::uint32_t left) { return std::uint64_t{raw(state_set)} << 32 | left; }

// A time that several threads may set at once. A copy of it may be made only while no other thread uses it.
class UseTime {
public:
    UseTime() = default;
    UseTime(const UseTime& other) : time_(other) {}
    UseTime& operator=(const UseTime& other) { return *this = static_cast<std::uint64_t>(other); }
    UseTime& operator=(std::uint64_t time) {
        time_.store(time, std::memory_order_relaxed);
        return *this;
    }
    operator std::uint64_t() const { return time_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> time_ = 0;
};

struct AutomatonCache {
    struct Span {  // the range [begin, end) of `key_tokens`, `key_exits` or `key_ranges`
        std::uint32_t begin, end;
    };
    // In `AutomatonCache::parts` from `at` on: `sets` token sets or tokens (`kOneToken`), then begin and end of `spans` spans of
    // `key_tokens`.
    struct Parts {
        std::uint32_t at = 0, sets = 0, spans = 0;
    };
    static constexpr std::uint32_t kOneToken = 1u << 31;  // set in a part that is the id of a token, not of a token set
    // A row is written in four steps (MaskEngine::write): the token set `run`, a delta without its changes; the sets and
    // spans of `parts`; the changes of `run`; the token set `verified`.
    struct Mask {
        // The token set of the first component over the vocabulary, perhaps a delta. The empty list if keys or punctuation were
        // taken apart, or at the rest of a sequence. kNoTokens: only a marker (MaskEngine::find).
        TokenSetId run{};
        TokenSetId verified = kNoTokens;  // context-dependent tokens that were stepped byte by byte and are legal
        Parts parts;                      // the tokens that end in the frames below, and those of a first component that is not in `run`
        bool accepting = false, context_dependent = false;  // context_dependent: it holds only for the text that was read
    };
    // Function summary of an object or array for one suffix trie: the parts that it accepts. After them, `parts` has the suffix
    // tries that are left at its end (`exits` of them), and those that are left after the value of an entry (`continuations` of them).
    struct ComponentSummary {
        Parts parts;
        std::uint32_t exits = 0, continuations = 0;
    };
    struct KeyExit {  // a key, as the label of its entry, and the suffix trie after the key; kNoTrie: no token continues there
        std::uint32_t label;
        TrieId suffix_trie;
    };
    struct KeyRange {  // the tokens [begin, end) of `key_tokens` can continue as the keys [first, last) of their index, and as no others
        std::uint32_t first, last, begin, end;
    };
    // The keys of an object from one state over one trie, whether they are allowed or not.
    struct KeyIndex {
        Span exits, ranges;  // of `key_exits` and `key_ranges`
        bool exists;         // false: the keys are not a set of texts, and have no index
    };

    FlatMap<Config, Mask, ConfigHash> masks;
    FlatMap<ResultKey, ComponentSummary, ResultKeyHash> summaries;
    FlatMap<ResultKey, KeyIndex, ResultKeyHash> key_indexes;  // by trie, first bytes of the colon, and state
    ArenaVector<KeyExit> key_exits;
    ArenaVector<KeyRange> key_ranges;
    ArenaVector<std::uint32_t> parts, key_tokens;
    // By state set: the position of its masks in `state_set_masks`. It is valid if `mask_owners` has the id of the state set there.
    IdVector<StateSetId, std::uint32_t, ArenaAllocator<std::uint32_t>> mask_positions;
    ArenaVector<Mask*> state_set_masks;   // the masks of one state set are adjacent; a row begins with the first
    ArenaVector<StateSetId> mask_owners;  // kNoStateSet: within the masks of a state set
    CompletionCache tails;                // long completions
    ConfigsMemo finish, worst;            // fewest tokens to finish, and an upper bound of that after any legal token
    // By state set: `finish` and `worst` for sets of more than `ConfigsMemo::kMostTogether` configurations, and the bytes
    // without an alternative.
    ResultMemo<StateSetId, std::uint32_t> large_finish, large_worst;
    ResultMemo<StateSetId, std::string> forced;
    ResultMemo<std::uint64_t, std::vector<std::uint32_t>> within;  // by `budget_key`: masks that a budget narrows and that took long
    std::unordered_map<StateSetId, std::array<std::uint64_t, 2>> mask_ids;  // kNoStateSet: of a text that has ended
    StateSetIndex state_sets;                                               // not counted in `bytes`, nor are the state sets
    MachineTables machine;
    std::size_t counted_bytes = 0;  // bytes, when they were counted last
    mutable UseTime last_use;       // time of its last use (MaskEngine::automaton_clock_), set by several threads

    // Empties all caches except `state_sets` (index, transitions) and `machine` (indexes, costs of frames), which `empty_idle_caches`
    // empties too. Resets `counted_bytes` and `last_use`.
    void empty_except_indexes() {
        AutomatonCache kept;
        kept.state_sets = std::move(state_sets);
        kept.machine = std::move(machine);
        *this = std::move(kept);
    }
    void touch(std::uint64_t time) const {
        if (last_use != time) last_use = time;
    }
    std::span<const std::uint32_t> tokens(Span span) const { return std::span(key_tokens).subspan(span.begin, span.end - span.begin); }
    std::size_t bytes() const {
        const auto of = [](const auto& list) { return list.capacity() * sizeof *list.data(); };
        return sizeof *this + masks.bytes() + summaries.bytes() + key_indexes.bytes() + of(key_exits) + of(key_ranges) + of(parts) +
               of(key_tokens) + of(mask_positions) + of(state_set_masks) + of(mask_owners) + tails.bytes() + finish.bytes() +
               worst.bytes() + large_finish.bytes() + large_worst.bytes() + forced.bytes() + within.bytes() + mask_ids.size() * 64;
    }
    std::span<Mask* const> masks_of(const StateSet& state_set) const {  // empty: not cached
        if (raw(state_set.id) >= mask_positions.size()) return {};
        const std::uint32_t begin = mask_positions[state_set.id];
        if (begin >= mask_owners.size() || mask_owners[begin] != state_set.id) return {};
        return std::span(state_set_masks).subspan(begin, state_set.count);
    }
    void keep_masks(const StateSet& state_set, std::span<Mask* const> found) {
        if (found.empty()) return;
        if (mask_positions.size() <= raw(state_set.id)) mask_positions.resize(raw(state_set.id) + std::size_t{1});
        const std::size_t begin = mask_owners.size();
        state_set_masks.resize(begin);
        state_set_masks.insert(state_set_masks.end(), found.begin(), found.end());
        mask_positions[state_set.id] = static_cast<std::uint32_t>(begin);
        mask_owners.resize(begin + found.size(), kNoStateSet);
        mask_owners[begin] = state_set.id;  // last: if an allocation failed before, `masks_of` finds nothing
    }
};

}  // namespace guideway
