#include "guideway/matcher/completions.h"

#include <algorithm>
#include <utility>

#include "guideway/base/bit_row.h"
#include "guideway/base/error.h"
#include "guideway/mask/substrings_walk.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxForced = 4096;           // maximum number of forced bytes in one call
constexpr std::uint32_t kMaxFollowed = 1'000'000;  // maximum length of a completion that is computed as a text
constexpr std::uint64_t kStepWork = 100;           // units of work for one byte of a completion
constexpr std::size_t kFewTried = 8;               // bytes; a result after no more is not cached

}  // namespace

std::string Completions::forced(const StateSet& state_set) {
    if (const std::string* known = engine_.cache_of(automaton_).forced.find(state_set.id)) return *known;
    std::size_t tried = 0;
    std::string found = next_forced({state_set.configs().begin(), state_set.configs().end()}, tried);
    if (tried > kFewTried) {
        engine_.cache_of(automaton_).forced.keep(state_set.id, found);
        engine_.recount_bytes(automaton_);
    }
    return found;
}

// Appends bytes while exactly one byte is legal and the text cannot end. Stops inside a quotation: a model copies a text
// better if it selects the tokens itself than if the longest ones are forced.
std::string Completions::next_forced(Configs configs, std::size_t& tried) {
    std::string forced;
    Configs next, only;
    const auto copies = [&](const Config& c) {
        ExprPool& pool = machine_.pool();
        return machine_.is_leaf(c) && is_substring_leaf(pool, c.expr()) && after_byte(pool, '"', c.expr()) == kNone;
    };
    const auto ends = [&](const Config& c) { return machine_.accepting(c); };
    while (forced.size() < kMaxForced && std::none_of(configs.begin(), configs.end(), ends) &&
           std::none_of(configs.begin(), configs.end(), copies)) {
        int byte = -1;
        for (unsigned b = 0; b < 256; ++b) {
            ++tried;
            machine_.step_all(configs, static_cast<std::uint8_t>(b), next);
            if (next.empty()) continue;
            if (byte >= 0) return forced;
            byte = static_cast<int>(b);
            only = next;
        }
        if (byte < 0) break;
        forced.push_back(static_cast<char>(byte));
        configs = only;
    }
    return forced;
}

std::uint32_t Completions::cost(const Configs& configs) {
    std::uint32_t bytes = kInfinite;
    for (const Config& c : configs) bytes = std::min(bytes, machine_.cost(c));
    return bytes;
}

std::string Completions::text(Configs configs) {
    if (const std::uint32_t bytes = cost(configs); bytes > kMaxFollowed)
        throw Error(ErrorKind::limit, "the shortest completion has at least " + std::to_string(bytes) + " bytes, more than " +
                                          std::to_string(kMaxFollowed) + " (a fixed limit): use smaller minimum lengths and counts");
    std::string text;
    Configs next;
    for (int b; (b = machine_.best_byte(configs)) >= 0;) {
        machine_.step_all(configs, static_cast<std::uint8_t>(b), next);
        if (machine_.cost_is_upper_bound()) configs.swap(next);
        else machine_.cheapest(next, configs);  // costs are exact: the others are not part of a shortest completion
        text.push_back(static_cast<char>(b));
        machine_.pool().fuel().spend(kStepWork);
    }
    return text;
}

// Fewest tokens that spell a shortest completion. Follows it to a text whose result is cached (completion_cache.h), then computes
// the fewest tokens from each position, from its end to its begin.
std::uint32_t Completions::fewest_tokens(Configs configs) {
    if (machine_.cost_is_upper_bound()) return vocabulary_.fewest_tokens(text(std::move(configs)));
    std::string text;
    CompletionCache::Tail tail;
    std::vector<std::pair<std::size_t, Configs>> places;
    Configs next;
    while (!(tail = engine_.cache_of(automaton_).tails.find(configs)).text) {
        if (text.size() % CompletionCache::kEvery == 0) places.emplace_back(text.size(), configs);
        const int b = machine_.best_byte(configs);
        if (b < 0) break;
        machine_.step_all(configs, static_cast<std::uint8_t>(b), next);
        machine_.cheapest(next, configs);
        text.push_back(static_cast<char>(b));
        machine_.pool().fuel().spend(kStepWork);
    }
    const std::size_t own = text.size();
    std::vector<std::uint32_t> fewest(own, kInfinite);
    if (tail.text) {
        const std::size_t seen = own < CompletionCache::kShortest ? std::min<std::size_t>(tail.size, vocabulary_.longest()) : tail.size;
        text.append(tail.text, seen);
        fewest.insert(fewest.end(), tail.fewest, tail.fewest + seen + 1);
    } else fewest.push_back(0);
    const TokenTrie& trie = vocabulary_.trie();
    for (std::size_t i = own; i-- > 0;) {
        std::uint32_t node = trie.child(0, static_cast<std::uint8_t>(text[i]));
        for (std::size_t j = i + 1; node; ++j) {
            if (fewest[j] != kInfinite && !trie.tokens_at(node).empty()) fewest[i] = std::min(fewest[i], fewest[j] + 1);
            if (j == text.size()) break;
            node = trie.child(node, static_cast<std::uint8_t>(text[j]));
        }
    }
    const std::uint32_t found = fewest[0];
    if (own >= CompletionCache::kShortest) engine_.cache_of(automaton_).tails.keep(std::move(text), std::move(fewest), std::move(places));
    return found;
}

std::uint32_t Completions::tokens(Configs configs) {
    machine_.drop_irrelevant_texts(configs, vocabulary_.longest());
    if (const auto known = engine_.cache_of(automaton_).finish.find(configs)) return *known;
    // No budget is as large as kMaxFollowed: above it, the number of bytes is exact enough.
    const std::uint32_t bytes = cost(configs);
    const std::uint32_t tokens = sum(bytes > kMaxFollowed ? bytes : fewest_tokens(configs), 1);
    engine_.cache_of(automaton_).finish.keep(std::move(configs), tokens);
    engine_.recount_bytes(automaton_);
    return tokens;
}

// An upper bound of the tokens that are needed after any token below the node, if all of these tokens stay in a state with
// self-loops; else kInfinite. A token that ends inside a character may need three more bytes, each a token.
std::uint32_t Completions::loop_needs(const Configs& configs, std::uint32_t node) {
    if (!vocabulary_.spells_every_byte()) return kInfinite;
    std::uint32_t least = kInfinite;
    for (const Config& c : configs) {
        if (!machine_.is_leaf(c)) continue;
        const Supersets::Unbounded state = machine_.pool().supersets.unbounded(c.expr());
        const SelfLoops* loops = engine_.loops(machine_.pool(), state.expr);
        if (!loops || !vocabulary_.subtrees().loop(node, *loops, machine_.component(c.node).follow)) continue;
        const bool alone = configs.size() == 1 && state.expr == c.expr();  // then every character returns to the same state
        least = std::min(least, sum(alone ? tokens(configs) : sum(machine_.cost(c), 1), 3));
    }
    return least;
}

std::uint32_t Completions::keep_within(const Configs& configs, std::span<std::uint32_t> row, std::uint32_t left) {
    const TokenTrie& trie = vocabulary_.trie();
    std::vector<Configs> path{configs};
    std::uint32_t worst = 0;
    const auto loops = [&](const Configs& at, std::uint32_t node) {
        const std::uint32_t needs = loop_needs(at, node);
        if (sum(needs, 1) > left) return false;
        worst = std::max(worst, needs);
        return true;
    };
    if (loops(configs, 0)) return worst;
    for (std::uint32_t i = 1; i < trie.size();) {
        const std::size_t depth = trie.depth[i];
        if (path.size() <= depth) path.resize(depth + 1);
        machine_.step_all(path[depth - 1], trie.byte[i], path[depth]);
        Configs& here = path[depth];
        if (here.empty()) {
            i = trie.end[i];
            continue;
        }
        machine_.drop_irrelevant_texts(here, vocabulary_.longest());
        if (const auto ending = trie.tokens_at(i); !ending.empty()) {
            const std::uint32_t bytes = cost(here);
            std::uint32_t needs = vocabulary_.spells_every_byte() ? sum(bytes, 1) : kInfinite;
            // If even tokens of maximum length do not fit, the exact number is not needed.
            if (sum(needs, 1) > left && (machine_.cost_is_upper_bound() || bytes / vocabulary_.longest() < left)) needs = tokens(here);
            worst = std::max(worst, needs);
            if (sum(needs, 1) > left) clear_bits(row, ending);
        }
        i = trie.end[i] > i + 1 && loops(here, i) ? trie.end[i] : i + 1;
    }
    return worst;
}

}  // namespace guideway
