// A switch for each mechanism that speeds up the computation of masks, and thresholds from which some are tried. No setting changes
// a mask (decision 7). Tests and benchmarks turn mechanisms off; tests set thresholds to their least values, so that small
// vocabularies reach the mechanisms.
#pragma once

#include <cstdint>
#include <string_view>

namespace guideway {

struct Tuning {
    // Subtrees of the token trie that are accepted without a walk (mask/leaf_walk.cpp).
    bool self_loops = true;         // of states that loop by all characters below a node; `plain_tokens` uses these loops in any case
    bool counted_heads = true;      // the same for states that begin with a bounded repetition
    bool class_sequences = true;    // of states that accept a fixed number of characters of a class
    bool stable_sets = true;        // of states in a stable set (mask/stable_sets.h)
    bool loop_scans = true;         // below states that loop by some characters: nodes are searched for the other bytes
    bool inside_characters = true;  // below nodes that end inside a multi-byte character
    bool child_filters = true;      // walks of leaves and machines skip, at nodes with 8 children or more, those that cannot continue
    // Parts of the vocabulary that are walked instead of all tokens (mask/leaf_results.cpp).
    bool plain_tokens = true;     // tokens without JSON structure are taken from tables
    bool alphabet_slices = true;  // strings in few characters are walked over their own tokens
    // Results that are derived from the result of another state.
    bool saturated_counters = true;  // counts beyond the longest token are one state
    bool supersets = true;           // of the state without bounds
    bool loop_bounds = true;         // of the state that does not count its loop bodies
    bool differences = true;         // of the state that most bytes lead to
    bool bases = true;               // of the first operand of a difference, if no token of a suffix trie leads to an excluded text
    bool delta_sets = true;          // runs are stored as a base run and its changes; `differences` stores them so in any case
    // Objects and arrays (mask/mask_builder.cpp).
    bool summaries = true;        // the result of a suffix trie in the rest of an object or array is cached (ComponentSummary)
    bool key_index = true;        // tokens are sorted by the keys that they lead to
    bool punctuation = true;      // punctuation is walked as leaves that all grammars share
    bool composite_walks = true;  // the items of an array with unique items are walked as components of a separate machine
    // Expressions (regex/lazy_dfa.cpp, regex/part_search.cpp) and programs (grammar/program.cpp).
    bool recent_derivatives = true;  // a cache of derivatives of states without rows
    bool needed_bytes = true;        // bytes that every text contains decide that an intersection is empty
    bool program_prefixes = true;    // the first expressions of a program are cached

    // Thresholds.
    std::uint32_t row_lookups = 24;     // derivatives of a state that are computed singly before it gets a row; larger numbers count as 127
    std::uint32_t worth_looking = 4;    // nodes of a subtree for which it is tested whether all of it is accepted
    std::uint32_t worth_scouting = 12;  // nodes of a subtree for which the loops of the state are computed
    std::uint32_t worth_closing = 2000;     // nodes of a subtree for which a stable set is searched
    std::uint32_t worth_following = 600;    // nodes walked from a state before all its loops and its class sequence are computed
    std::uint32_t few_bytes = 16;           // an alphabet below this size is not tested before its slice is made
    std::uint32_t slice_nodes = 3000;       // maximum number of nodes of the trie of an alphabet slice
    std::uint32_t difference_bound = 3000;  // maximum number of nodes or tokens of a difference
    std::uint32_t first_tries = 300;        // tokens of a superset that are checked before a difference is tried
    std::uint32_t tries = 4000;             // maximum number of tokens of a superset that are checked

    bool accepts_subtrees() const { return self_loops || class_sequences || stable_sets; }
    // All mechanisms off.
    static constexpr Tuning off();
    // All on, with thresholds that small vocabularies reach.
    static constexpr Tuning eager();
};

struct TuningSwitch {
    std::string_view name;
    bool Tuning::* member;
};
inline constexpr TuningSwitch kTuningSwitches[] = {
    {"self_loops", &Tuning::self_loops},
    {"counted_heads", &Tuning::counted_heads},
    {"class_sequences", &Tuning::class_sequences},
    {"stable_sets", &Tuning::stable_sets},
    {"loop_scans", &Tuning::loop_scans},
    {"inside_characters", &Tuning::inside_characters},
    {"child_filters", &Tuning::child_filters},
    {"plain_tokens", &Tuning::plain_tokens},
    {"alphabet_slices", &Tuning::alphabet_slices},
    {"saturated_counters", &Tuning::saturated_counters},
    {"supersets", &Tuning::supersets},
    {"loop_bounds", &Tuning::loop_bounds},
    {"differences", &Tuning::differences},
    {"bases", &Tuning::bases},
    {"delta_sets", &Tuning::delta_sets},
    {"summaries", &Tuning::summaries},
    {"key_index", &Tuning::key_index},
    {"punctuation", &Tuning::punctuation},
    {"composite_walks", &Tuning::composite_walks},
    {"recent_derivatives", &Tuning::recent_derivatives},
    {"needed_bytes", &Tuning::needed_bytes},
    {"program_prefixes", &Tuning::program_prefixes},
};

struct TuningThreshold {
    std::string_view name;
    std::uint32_t Tuning::* member;
    std::uint32_t eager;  // the value with which small vocabularies reach the mechanism
};
inline constexpr TuningThreshold kTuningThresholds[] = {
    {"row_lookups", &Tuning::row_lookups, 2},         {"worth_looking", &Tuning::worth_looking, 1},
    {"worth_scouting", &Tuning::worth_scouting, 1},   {"worth_closing", &Tuning::worth_closing, 8},
    {"worth_following", &Tuning::worth_following, 0}, {"few_bytes", &Tuning::few_bytes, 64},
    {"slice_nodes", &Tuning::slice_nodes, 9000},      {"difference_bound", &Tuning::difference_bound, 9000},
    {"first_tries", &Tuning::first_tries, 9000},      {"tries", &Tuning::tries, 9000},
};

constexpr Tuning Tuning::off() {
    Tuning made;
    for (const TuningSwitch& each : kTuningSwitches) made.*each.member = false;
    return made;
}

constexpr Tuning Tuning::eager() {
    Tuning made;
    for (const TuningThreshold& each : kTuningThresholds) made.*each.member = each.eager;
    return made;
}

}  // namespace guideway
