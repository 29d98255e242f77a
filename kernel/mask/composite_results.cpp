// Results of JSON arrays and objects that are one leaf, because they must differ from other values (composite_language.h). The
// tokens of such a value are computed like a mask, by a separate machine, from its components and frames. The tokens after which
// the value could only be one of the excluded values are then removed.
#include <algorithm>
#include <utility>

#include "guideway/base/bit_row.h"
#include "guideway/base/error.h"
#include "guideway/base/simd.h"
#include "guideway/base/sort_unique.h"
#include "guideway/grammar/composite_language.h"
#include "guideway/mask/mask_engine.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

namespace {

// The tokens after which no text of `value` is left except those of `others`. Only nodes along the texts of `others` are visited.
std::vector<std::uint32_t> spelled_alike(ExprPool& pool, const TrieForest& forest, ExprId value, ExprId others) {
    struct Level {
        ExprId value, others;
        ChildFilter filter;
    };
    const TokenTrie& x = *forest.trie;
    std::vector<std::uint32_t> excluded_tokens;
    std::vector<Level> path{{value, others, forest.whole() ? ChildFilter(x, 0, pool.dfa.first(others)) : ChildFilter()}};
    for (const TrieForest::Part& part : forest.parts)
        for (std::uint32_t i = part.begin; i < part.end;) {
            pool.fuel().spend(1);
            path.resize(x.depth[i] - part.above);
            const Level& above = path.back();
            if (const std::uint32_t wanted = above.filter.next(x, i); wanted != i) {
                i = wanted;
                continue;
            }
            const ExprId left = pool.dfa.derivative(above.others, x.byte[i]);
            const ExprId next = left == kNone ? kNone : pool.dfa.derivative(above.value, x.byte[i]);
            if (next == kNone) {
                i = x.end[i];
                continue;
            }
            if (!pool.emptiness.is_nonempty(pool.subtract(next, left))) {
                excluded_tokens.insert(excluded_tokens.end(), x.tokens.begin() + x.first_token[i],
                                       x.tokens.begin() + x.first_token[x.end[i]]);
                i = x.end[i];
                continue;
            }
            path.push_back({next, left, x.wide(i) ? ChildFilter(x, i, pool.dfa.first(left)) : ChildFilter()});
            ++i;
        }
    sort_unique(excluded_tokens);
    return excluded_tokens;
}

}  // namespace

// Adds the tokens that a configuration of the inner machine accepts to `accepted`. Returns the suffix trie at the end of the value.
TrieId MaskBuilder::run_inner(Machine& inner, TrieId trie, const Config& config, Accepted& accepted) {
    std::vector<TrieId> end_tries;
    Mask mask;
    mask.run = kNoTokens;
    at_node(-1, [&] {  // errors name no node: those of the inner machine are not nodes of the grammar
        if (inner.shares_stacks()) end_tries = saturate_all(inner, trie, config, mask);
        else {
            end_tries_ = &end_tries;
            tasks_.assign(1, {trie, config});
            drain_worklist(inner, mask);
        }
    });
    std::vector<std::uint32_t> own;  // the tokens as a row, once a set is not sparse
    const auto add_token = [&](std::uint32_t t) {
        if (own.empty()) accepted.tokens.push_back(t);
        else set_bit(own, t);
    };
    const auto add = [&](TokenSetId set) {
        if (own.empty() && sets_[set].form == TokenSet::Form::sparse) return sets_.append(set, accepted.tokens);
        own.resize(words_);
        sets_.merge(set, own);
    };
    if (mask.run != kNoTokens) add(mask.run);
    for (const TokenSetId set : std::exchange(found_, {})) add(set);
    for (const std::uint32_t t : std::exchange(tokens_, {})) add_token(t);
    for (const Span& span : std::exchange(spans_, {}))
        for (const std::uint32_t t : cache_->tokens(span)) add_token(t);
    sort_unique(end_tries);
    TrieId suffix_trie = end_tries.size() == 1 ? end_tries[0] : suffix_tries_.united(end_tries);
    if (mask.run != kNoTokens) {
        sets_.change(mask.run, own);
        if (sets_[mask.run].form == TokenSet::Form::delta) suffix_trie = results_.without(suffix_trie, sets_[mask.run].cleared());
    }
    if (own.empty()) return suffix_trie;
    accepted.row.resize(words_);
    join(own, accepted.row);
    return suffix_trie;
}

// The builder must be new.
WalkResult MaskBuilder::composite(AutomatonCache& cache, Machine& machine, TrieId trie, const Config& config) {
    cache_ = &cache;
    ExprPool& pool = machine.pool();
    const CompositeState state = pool[config.expr()].composite_state();
    Machine& inner = CompositeLanguage::of(pool).machine(state);
    inner.set_ids([&](const AnalysedNode& c) { return results_.ids().of(c); });
    Accepted here;
    auto& [tokens, row] = here;
    std::vector<TrieId> suffix_tries;
    for (const Config& c : CompositeLanguage::of(pool).configs(state))
        if (c.node != kDone)
            if (const TrieId suffix_trie = run_inner(inner, trie, c, here); suffix_trie != kNoTrie) suffix_tries.push_back(suffix_trie);
    sort_unique(context_dependent_);
    const bool listed = row.empty() && tokens.size() <= words_;
    if (listed) sort_unique(tokens);
    else {
        row.resize(words_);
        set_bits(row, tokens);
    }
    WalkResult made{listed ? sets_.sparse(tokens) : sets_.row(row),
                    suffix_tries.size() == 1 ? suffix_tries[0] : suffix_tries_.united(suffix_tries), kNoTokens};
    if (!context_dependent_.empty()) made.context_dependent = sets_.sparse(context_dependent_);
    return made;
}

bool MaskEngine::walk_composite(Machine& machine, TrieId trie, const Config& config, WalkResult& made) {
    ExprPool& pool = machine.pool();
    std::vector<Layer> layers;
    Config there = config;
    there.set_expr(split_layers(pool, config.expr(), layers));
    if (pool[there.expr()].op != Op::composite) return false;
    if (layers.empty()) {
        MaskBuilder inner(results_, summaries_, punctuation_);  // a separate one, because builder_ is in use
        made = inner.composite(*current_cache_, machine, trie, there);
        return true;
    }
    if (layers.size() > 1 || layers[0].tail != kEmpty) return false;
    made = results_.run(machine, trie, there);
    const auto excluded_tokens = spelled_alike(pool, results_.suffix_tries().forest(trie), there.expr(), layers[0].texts);
    if (excluded_tokens.empty()) return true;
    std::vector<std::uint32_t> row(results_.words());
    sets().write(made.tokens, row);
    clear_bits(row, excluded_tokens);
    made.tokens = sets().row(row);
    if (results_.suffix_tries().contains_any(made.suffix_trie, excluded_tokens))
        made.suffix_trie = results_.suffix_tries().without(made.suffix_trie, excluded_tokens);
    return true;
}

}  // namespace guideway
