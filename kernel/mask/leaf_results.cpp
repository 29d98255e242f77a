#include "guideway/mask/leaf_results.h"

#include <algorithm>

#include "guideway/base/bit_row.h"
#include "guideway/base/dcheck.h"
#include "guideway/base/error.h"
#include "guideway/base/simd.h"
#include "guideway/mask/machine_walk.h"
#include "guideway/mask/substrings_walk.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxAlphabets = 32;  // maximum size of `alphabet_slices_`, which is searched linearly
constexpr ByteSet kAscii{{~std::uint64_t{0}, ~std::uint64_t{0}, 0, 0}};
constexpr std::uint64_t kRunWork = 100;  // work units of a run, without those of its walk
constexpr std::size_t kWiderBytes = 64;  // of an entry of `superset_bounds_`

std::uint32_t count_of(std::span<const TokenRange> places) {
    std::uint32_t n = 0;
    for (const TokenRange& p : places) n += p.end - p.begin;
    return n;
}

}  // namespace

ComponentId ComponentIds::of(const AnalysedNode& component) {
    return component.kind == NodeKind::leaf ? of_leaf(component.follow) : next();
}

// Ids are not reused: a key of the memo may contain one.
ComponentId ComponentIds::next() {
    if (next_ == kLast)
        throw Error(ErrorKind::limit,
                    "the vocabulary has numbered as many grammar nodes as 32 bits can name; compile with a new vocabulary");
    return ComponentId{next_++};
}

ComponentId ComponentIds::of_leaf(const ByteSet& follow) {
    if (const auto known = leaves_.find(follow); known != leaves_.end()) return known->second;
    return leaves_.emplace(follow, next()).first->second;
}

LeafResults::LeafResults(const TokenTable& vocabulary, const Tuning& tuning, Fuel& work, CompositeResults& composites)
    : vocabulary_(vocabulary), trie_(vocabulary.trie()), subtrees_(vocabulary.subtrees()), words_(vocabulary.words()), tuning_(tuning),
      fuel_(work), composites_(composites), sets_(words_), dfa_table_(vocabulary.longest()),
      suffix_tries_(trie_, vocabulary.longest(), work), all_(words_, 0xffffffff) {
    structural_.fill(kNoTrie);
    const std::span<const std::uint32_t> starts = vocabulary.tokens().starts;
    const std::uint32_t size = vocabulary.size();
    if (size & 31) all_.back() = (1u << (size & 31)) - 1;
    for (std::uint32_t t = 0; t < size; ++t) {
        const std::uint32_t length = starts[t + 1] - starts[t];
        if (length == 0) clear_bit(all_, t);
        else if (length >= kNear) longest_first_.push_back(t);
    }
    std::stable_sort(longest_first_.begin(), longest_first_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return vocabulary.token(a).size() > vocabulary.token(b).size(); });
}

// Removes the results that were not used since `time`. Marks the suffix tries of the others.
void LeafResults::drop_before(std::uint32_t time, std::vector<bool>& tries) {
    counters.bytes = 0;
    memo_.erase_if([&](const ResultKey&, const Known& known) { return known.last_use < time; });
    const auto mark = [&](TrieId trie) {
        if (trie != kNoTrie) tries[raw(trie)] = true;
    };
    mark(kVocabularyTrie);
    for (const TrieId trie : structural_) mark(trie);
    for (const auto& [bytes, trie] : alphabet_slices_) mark(trie);
    memo_.each([&](const ResultKey&, const Known& known) { mark(known.run.suffix_trie); });
}

// Removes the suffix tries and token sets that are not marked, and the results over removed tries.
void LeafResults::sweep(std::vector<bool>& sets, const std::vector<bool>& tries) {
    memo_.erase_if([&](const ResultKey& key, const Known&) { return !tries[raw(key.trie)]; });
    memo_.each([&](const ResultKey&, const Known& known) {
        mark_used(known.run.tokens, sets);
        mark_used(known.run.context_dependent, sets);
    });
    std::erase_if(rounds_, [&](const auto& entry) { return !memo_.find(entry.first); });
    for (const auto& [key, kept] : rounds_) counters.bytes += kept.bytes();
    std::erase_if(superset_bounds_, [&](const auto& entry) { return !memo_.find(entry.first); });
    counters.bytes += memo_.size() * kRunBytes + superset_bounds_.size() * kWiderBytes;
    up_to_.clear();
    sets_.sweep(sets);
    suffix_tries_.sweep(tries);
    loops_.clear();
    dfa_table_.clear();
}

void mark_used(TokenSetId set, std::vector<bool>& sets) {
    if (set == kNoTokens) return;
    if (sets.size() <= raw(set)) sets.resize(raw(set) + std::size_t{1});
    sets[raw(set)] = true;
}

void LeafResults::clear() {
    memo_.clear();
    sets_ = TokenSets(words_);
    loops_.clear();
    dfa_table_.clear();
    suffix_tries_.clear();
    superset_bounds_.clear();
    rounds_.clear();
    structural_.fill(kNoTrie);
    alphabet_slices_.clear();
    up_to_.clear();
    counters.bytes = 0;
}

// The result is stored without a base (as with `bare`), because its tokens are only added to masks.
const WalkResult& LeafResults::run_shared(ExprPool& pool, TrieId trie, ComponentId component, ExprId state, const ByteSet& follow) {
    const ResultKey key{trie, component, raw(state), trie == kVocabularyTrie};
    if (Known* known = memo_.find(key)) {
        known->last_use = counters.result_clock;
        return known->run;
    }
    ++counters.misses;
    ++counters.result_clock;
    counters.bytes += kRunBytes;
    return memo_.add(key, {walk_leaf(pool, trie, state, follow), counters.result_clock}).run;
}

const WalkResult& LeafResults::run(Machine& machine, TrieId trie, const Config& config, bool bare) {
    const bool leaf = machine.is_leaf(config);
    bare &= leaf && trie == kVocabularyTrie;
    Config at = config;
    if (leaf) at.set_expr(clipped(machine.pool(), trie, config.expr()));
    const ResultKey key{trie, machine.component(config.node).id, raw(at.state), leaf ? std::uint32_t{bare} : raw(config.regs)};
    if (Known* known = memo_.find(key)) {
        counters.hits.fetch_add(1, std::memory_order_relaxed);
        known->last_use = counters.result_clock;
        return known->run;
    }
    fuel_.spend(kRunWork + words_ / 8);
    ++counters.misses;
    ++counters.result_clock;
    WalkResult made{};
    const bool clipped = at.state != config.state;
    const bool difference = leaf && trie == kVocabularyTrie && is_difference(machine.pool(), at.expr());
    // Of a leaf over the vocabulary, the cheapest way first: the run without loop bounds, if it is known; the table of
    // plain tokens; the run without loop bounds, walked now; a superset with at most `first_tries` tokens to test; the
    // difference from another state; a superset with at most `tries`. Of a difference of languages: only the last two.
    // With `bare`: only the table, and nothing for a difference of languages.
    auto derive_from_others = [&] {
        if (difference) return !bare && (walk_difference(machine, at, made) || walk_superset(machine, at, tuning_.tries, made));
        if (!bare && walk_without_loop_bounds(machine, at, false, made)) return true;
        if (walk_plain_tokens(machine, at, bare, made)) return true;
        return !bare && (walk_without_loop_bounds(machine, at, true, made) || walk_superset(machine, at, tuning_.first_tries, made) ||
                         walk_difference(machine, at, made) || walk_superset(machine, at, tuning_.tries, made));
    };
    // Not a leaf: a walk of the machine. A composite value: the inner machine, if it can. A leaf over a suffix trie or an alphabet
    // slice, or a substring: a walk of the leaf. Any other leaf over the vocabulary: from others, or else a walk of the leaf.
    at_node(raw(config.node), [&] {
        const bool is_substring = leaf && is_substring_leaf(machine.pool(), at.expr());  // its own walk is the shortest
        const TrieId walked_trie = leaf && trie == kVocabularyTrie && !is_substring ? alphabet_slice(machine.pool(), at.expr()) : trie;
        if (!leaf) made = walk(machine, trie, at);
        else if (tuning_.composite_walks && composites_.walk_composite(machine, trie, at, made)) {
        } else if (trie != kVocabularyTrie && walk_minuend(machine, trie, at, made)) {
        } else if (walked_trie != kVocabularyTrie || is_substring || !derive_from_others())
            made = walk_leaf(machine.pool(), walked_trie, at.expr(), machine.component(config.node).follow, nullptr,
                             clipped && walked_trie == kVocabularyTrie && tuning_.loop_bounds ? &key : nullptr);
    });
    counters.bytes += kRunBytes;
    return memo_.add(key, {made, counters.result_clock}).run;
}

// Whether the state loops by all characters of plain tokens. The space is tested first, because most states do not loop by it,
// and to find all self-loops is expensive (decision 7).
bool LeafResults::accepts_plain_tokens(ExprPool& pool, ExprId state, bool exact) {
    if (!pool[state].unbounded) return false;
    const ExprId behind = pool.dfa.derivative(state, ' ');
    if (behind != state && (exact || behind == kNone || !has_summand(pool, behind, state))) return false;
    const SelfLoops* const loops = loops_.find(pool, subtrees_, state, exact);
    return loops && PlainTokens::accepted_by(*loops);
}

// A summand of the state that accepts all plain tokens; kNone if there is none. What a summand accepts, the sum accepts, and no
// plain token leaves the leaf, because the leaf ends with a quote.
ExprId LeafResults::plain_summand(ExprPool& pool, ExprId state) {
    ExprId found = kNone;
    if (!ends_in(pool, state, '"')) return found;
    each_summand(pool, state, [&](ExprId part) {
        const bool good = accepts_plain_tokens(pool, part, false);
        if (good) found = part;
        return good;
    });
    return found;
}

// The set of all plain tokens of at most `characters` characters, and of the tokens `others`.
TokenSetId LeafResults::plain_set(std::uint32_t characters, std::span<const std::uint32_t> others) {
    const PlainTokens& plain = vocabulary_.plain_tokens();
    if (plain_row_.empty()) {
        plain_row_ = all_;
        for (const auto kind : {PlainTokens::control, PlainTokens::longer, PlainTokens::rest})
            clear_bits(plain_row_, plain.structural(kind).tokens);
    }
    std::vector<std::uint32_t> row = plain_row_;
    if (characters < plain.most_characters()) {
        row.assign(words_, 0);
        set_bits(row, plain.up_to(characters));
    }
    set_bits(row, others);
    return sets_.row(row);
}

// The run of a state that reads plain characters: the plain tokens that are short enough are in a table, so only the structural
// tokens are walked.
bool LeafResults::walk_plain_tokens(Machine& machine, const Config& config, bool bare, WalkResult& made) {
    ExprPool& pool = machine.pool();
    const Supersets::Unbounded state = pool.supersets.unbounded(config.expr());
    if (!tuning_.plain_tokens || pool[state.expr].nullable) return false;
    // Another state whose run has these plain tokens, and perhaps longer ones: the base of a delta; kNone: none.
    ExprId like = state.left == kInfinite ? kNone : state.expr;
    if (!accepts_plain_tokens(pool, state.expr, true)) {
        if (state.left != kInfinite) return false;
        like = plain_summand(pool, state.expr);
        if (like == kNone) return false;
        if (like == state.expr) like = kNone;
    }
    const PlainTokens& plain = vocabulary_.plain_tokens();
    for (const auto kind : {PlainTokens::control, PlainTokens::longer, PlainTokens::rest})
        if (structural_[kind] == kNoTrie)
            structural_[kind] = suffix_tries_.of(TokenTrie::over(plain.structural(kind).block(), vocabulary_.size()));
    static const ByteSet controls = ByteSet::range(0, 0x1f);
    Config there = config;
    std::vector<TrieId> suffix_tries;
    auto structural = [&](ExprId at) {
        std::vector<std::uint32_t> tokens;
        there.set_expr(at);
        suffix_tries.clear();
        for (const auto kind : {PlainTokens::control, PlainTokens::longer, PlainTokens::rest}) {
            if (kind == PlainTokens::control && !pool.dfa.first(state.expr).meets(controls)) continue;
            const WalkResult one = run(machine, structural_[kind], there);
            sets_.append(one.tokens, tokens);
            if (one.suffix_trie != kNoTrie) suffix_tries.push_back(one.suffix_trie);
        }
        std::sort(tokens.begin(), tokens.end());
        return tokens;
    };
    std::vector<std::uint32_t> tokens = structural(config.expr());
    made = {kNoTokens, suffix_tries.size() == 1 ? suffix_tries[0] : suffix_tries_.united(suffix_tries), kNoTokens};
    const std::uint32_t left = std::min(state.left, plain.most_characters());
    if (like != kNone && tuning_.delta_sets && !bare) {
        there.set_expr(like);
        const TokenSetId base = run(machine, kVocabularyTrie, there).tokens;
        std::vector<std::uint32_t> of_base = structural(like), cleared, added;
        std::set_difference(of_base.begin(), of_base.end(), tokens.begin(), tokens.end(), std::back_inserter(cleared));
        std::set_difference(tokens.begin(), tokens.end(), of_base.begin(), of_base.end(), std::back_inserter(added));
        const auto longer = plain.longer_than(left);
        if (sets_[base].form == TokenSet::Form::dense && longer.size() + cleared.size() <= tuning_.difference_bound &&
            !suffix_tries_.contains_any(made.suffix_trie, cleared)) {
            cleared.insert(cleared.end(), longer.begin(), longer.end());
            made.tokens = sets_.delta(base, std::move(cleared), added);
            return true;
        }
    }
    made.tokens = plain_set(left, tokens);
    return true;
}

// Loop bodies are recorded only for the whole vocabulary: over short suffix tries few counts occur, and to walk states
// without bounds costs more there than it saves (decision 7).
ExprId LeafResults::clipped(ExprPool& pool, TrieId trie, ExprId state) const {
    return tuning_.saturated_counters
               ? pool.supersets.saturate_counters(state, suffix_tries_.reach(trie), trie == kVocabularyTrie && tuning_.loop_bounds)
               : state;
}

// Whether the run of a leaf's state over the whole vocabulary is known.
bool LeafResults::knows(Machine& machine, const Config& config, ExprId state) {
    return memo_.find({kVocabularyTrie, machine.component(config.node).id, raw(clipped(machine.pool(), kVocabularyTrie, state)), 0}) !=
           nullptr;
}

// The run of the state's delta base (`LazyDfa::delta_base`), with the tokens by which the two states differ.
bool LeafResults::walk_difference(Machine& machine, const Config& config, WalkResult& made) {
    if (!tuning_.differences) return false;
    ExprPool& pool = machine.pool();
    const ExprId base = pool.dfa.delta_base(config.expr());
    if (base <= kEmpty || base == config.expr()) return false;
    // To walk both states pays only if the run of the base needs no walk: it accepts all plain tokens, or is cached.
    if (!is_difference(pool, config.expr()) && !accepts_plain_tokens(pool, base, true) && !knows(machine, config, base)) return false;
    const auto difference = pair_walk(pool, trie_, config.expr(), base, tuning_.difference_bound);
    if (!difference) return false;
    Config there = config;
    there.set_expr(base);
    const WalkResult run_of_base = run(machine, kVocabularyTrie, there);
    if (run_of_base.context_dependent != kNoTokens) return false;
    made = run_of_base;
    made.tokens = sets_.changed(run_of_base.tokens, difference->cleared, difference->added);
    return true;
}

// If no text of the trie spells an excluded text of a difference: the run of the expression that they are excluded from.
bool LeafResults::walk_minuend(Machine& machine, TrieId trie, const Config& config, WalkResult& made) {
    const TrieForest& forest = suffix_tries_.forest(trie);
    if (!tuning_.bases || !forest.whole()) return false;
    Config there = config;
    there.set_expr(minuend_of(machine.pool(), config.expr()));
    if (there.expr() == kNone) return false;
    const auto difference = text_walk(machine.pool(), *forest.trie, config.expr(), there.expr(), tuning_.difference_bound);
    if (!difference || !difference->cleared.empty()) return false;
    made = run(machine, trie, there);
    return true;
}

const LeafResults::Known& LeafResults::superset_result(Machine& machine, const Config& config, SupersetBounds& wider) {
    const AnalysedNode& component = machine.component(config.node);
    const ResultKey key{kVocabularyTrie, component.id, raw(config.expr()), 0};
    Known* known = memo_.find(key);
    const auto met = superset_bounds_.find(key);
    if (known && met != superset_bounds_.end()) {
        wider = met->second;
        known->last_use = counters.result_clock;
        return *known;
    }
    const WalkResult made =
        walk_leaf(machine.pool(), alphabet_slice(machine.pool(), config.expr()), config.expr(), component.follow, &wider);
    if (met == superset_bounds_.end()) counters.bytes += kWiderBytes;
    superset_bounds_[key] = wider;
    if (known) return *known;
    counters.bytes += kRunBytes;
    return memo_.add(key, {made, counters.result_clock});
}

// The run of a superset of the state (supersets.h), without the tokens that the state does not accept. Only long tokens can be
// such tokens; at most `most_tried` of them are tested.
bool LeafResults::walk_superset(Machine& machine, const Config& config, std::size_t most_tried, WalkResult& made) {
    if (!tuning_.supersets) return false;
    ExprPool& pool = machine.pool();
    bool quick = false;  // a summand has self-loops, so its walk accepts whole subtrees
    if (!pool[config.expr()].boolean)
        each_summand(pool, config.expr(), [&](ExprId part) { return quick = loops_.find(pool, subtrees_, part, false) != nullptr; });
    if (quick) return false;
    const Superset relaxed = pool.supersets.superset(config.expr());
    if (relaxed.expr == config.expr() || relaxed.expr <= kEmpty) return false;
    // The length in bytes up to which the state accepts the same tokens, if shortest completions in the superset have at most
    // `needed` bytes.
    auto same_for = [&](std::uint32_t needed) {
        return std::min(relaxed.early, relaxed.exact_up_to - std::min(relaxed.exact_up_to, needed));
    };
    const bool boolean = pool[config.expr()].boolean;
    if (boolean && same_for(pool.emptiness.shortest(relaxed.expr)) + 1 < kNear) return false;  // decided without a walk
    Config there = config;
    there.set_expr(relaxed.expr);
    SupersetBounds wider;
    const WalkResult run = superset_result(machine, there, wider).run;
    const std::uint32_t most = same_for(boolean ? wider.rest : 0);
    if (wider.deepest > most || most + 1 < kNear || run.context_dependent != kNoTokens) return false;
    write_row(run.tokens);
    std::vector<std::uint32_t> cleared;  // at first: all tokens to test
    for (const std::uint32_t t : longest_first_) {
        if (vocabulary_.token(t).size() <= most) break;
        if (!has_bit(row_, t)) continue;
        if (cleared.size() == most_tried) return false;
        cleared.push_back(t);
    }
    std::erase_if(cleared, [&](std::uint32_t t) { return accepts_token(pool, config.expr(), vocabulary_.token(t)); });
    made = run_without(run, std::move(cleared));
    return true;
}

// Writes the tokens of a set to row_.
void LeafResults::write_row(TokenSetId set) {
    row_.resize(words_);
    sets_.write(set, row_);
    sets_.change(set, row_);
}

bool LeafResults::accepts_token(ExprPool& pool, ExprId state, std::string_view token) {
    fuel_.spend(token.size());
    return pool.dfa.nonempty_after(state, token);
}

// The run without the tokens `cleared`. row_ must have the tokens of the run. The tokens that a delta clears are also removed from
// the results of its suffix trie. So the result is a delta of the same base, or these tokens are removed from the suffix trie.
WalkResult LeafResults::run_without(const WalkResult& run, std::vector<std::uint32_t>&& cleared) {
    WalkResult made = run;
    if (cleared.empty()) return made;
    std::sort(cleared.begin(), cleared.end());
    GUIDEWAY_DCHECK(std::ranges::all_of(cleared, [&](std::uint32_t t) { return has_bit(row_, t); }));
    const TokenSet::Form form = sets_[run.tokens].form;
    if (tuning_.delta_sets && form != TokenSet::Form::sparse && !suffix_tries_.contains_any(run.suffix_trie, cleared)) {
        made.tokens = sets_.changed(run.tokens, std::move(cleared), {});
        return made;
    }
    if (form == TokenSet::Form::delta) made.suffix_trie = without(run.suffix_trie, sets_[run.tokens].cleared());
    clear_bits(row_, cleared);
    made.tokens = sets_.row(row_);
    return made;
}

// A suffix trie without the tokens that a delta clears.
TrieId LeafResults::without(TrieId suffix_trie, std::span<const std::uint32_t> cleared) {
    std::vector<std::uint32_t> sorted(cleared.begin(), cleared.end());
    std::sort(sorted.begin(), sorted.end());
    return suffix_tries_.contains_any(suffix_trie, sorted) ? suffix_tries_.without(suffix_trie, sorted) : suffix_trie;
}

// The run of the state that does not count iterations of loop bodies, without the tokens that have too many of them.
// `walks`: whether to compute that run if it is not known.
bool LeafResults::walk_without_loop_bounds(Machine& machine, const Config& config, bool walks, WalkResult& made) {
    if (!tuning_.loop_bounds) return false;
    ExprPool& pool = machine.pool();
    const Superset unbounded = pool.supersets.without_loop_bounds(config.expr());
    if (unbounded.expr == config.expr()) return false;
    const AnalysedNode& component = machine.component(config.node);
    const ResultKey key{kVocabularyTrie, component.id, raw(unbounded.expr), 0};
    Known* known = memo_.find(key);
    if (!known && walks) {
        const WalkResult run = walk_leaf(pool, kVocabularyTrie, unbounded.expr, component.follow, nullptr, &key);
        counters.bytes += kRunBytes;
        known = &memo_.add(key, {run, counters.result_clock});
    }
    const auto rounds = rounds_.find(key);
    if (!known || known->run.context_dependent != kNoTokens || rounds == rounds_.end() ||
        unbounded.loop_body > rounds->second.loop_bodies || rounds->second.at_exits > unbounded.exact_up_to)
        return false;
    known->last_use = counters.result_clock;
    write_row(known->run.tokens);
    std::vector<std::uint32_t> cleared;
    for (const auto& [token, begun] : rounds->second.tokens) {
        if (begun <= unbounded.exact_up_to || !has_bit(row_, token)) continue;
        if (!accepts_token(pool, config.expr(), vocabulary_.token(token))) cleared.push_back(token);
    }
    made = run_without(known->run, std::move(cleared));
    return true;
}

// The trie of the tokens that a string of few ASCII characters can read: a walk of all tokens would mostly visit others.
// kVocabularyTrie if these tokens are too many, or if the state is no such string.
TrieId LeafResults::alphabet_slice(ExprPool& pool, ExprId state) {
    if (!tuning_.alphabet_slices || !ends_in(pool, state, '"')) return kVocabularyTrie;
    // Usually the first bytes, or those after the opening quote, are too many already. To find all bytes is expensive.
    if (!pool[state].boolean) {
        const ByteSet first = pool.dfa.first(state);
        if (is_large_alphabet(first.size() == 1 ? pool.dfa.first(pool.dfa.derivative(state, static_cast<std::uint8_t>(first.from(0))))
                                                : first))
            return kVocabularyTrie;
    }
    const ByteSet bytes = pool.byte_facts.alphabet(state);
    if (!bytes.within(kAscii)) return kVocabularyTrie;
    if (const TrieId* known = known_slice(bytes)) return *known;
    if (alphabet_slices_.size() >= kMaxAlphabets) return kVocabularyTrie;
    return alphabet_slices_.emplace_back(bytes, suffix_tries_.of_alphabet(bytes, tuning_.slice_nodes)).second;
}

const TrieId* LeafResults::known_slice(const ByteSet& bytes) const {
    for (const auto& [known, trie] : alphabet_slices_)
        if (trie != kVocabularyTrie ? bytes.within(known) : known.within(bytes)) return &trie;
    return nullptr;
}

bool LeafResults::is_large_alphabet(const ByteSet& bytes) {
    if (!bytes.within(kAscii)) return true;
    if (bytes.size() < tuning_.few_bytes) return false;
    if (const TrieId* known = known_slice(bytes)) return *known == kVocabularyTrie;
    if (alphabet_slices_.size() >= kMaxAlphabets) return true;  // no more are cached
    if (!suffix_tries_.alphabet_exceeds(bytes, tuning_.slice_nodes)) return false;
    alphabet_slices_.emplace_back(bytes, kVocabularyTrie);
    return true;
}

void LeafResults::keep_rounds(ExprPool& pool, const TokenTrie& x, const LeafWalk& walked, const ResultKey& key) {
    Rounds made{{}, walked.counts ? walked.rounds_at_exits : kInfinite, pool.supersets.loop_bodies()};
    if (walked.counts) {
        for (const auto& [places, begun] : walked.rounds)
            for (std::uint32_t p = places.begin; p < places.end; ++p) made.tokens.emplace_back(x.tokens[p], begun);
    }
    counters.bytes += made.bytes();
    rounds_[key] = std::move(made);
}

// `rounds_of`: the key under which `Rounds` are cached, if the state does not count all its loop bodies; else null.
WalkResult LeafResults::walk_leaf(ExprPool& pool, TrieId id, ExprId state, const ByteSet& follow, SupersetBounds* wider,
                                  const ResultKey* rounds_of) {
    const TrieForest& forest = suffix_tries_.forest(id);
    LeafWalk walked;
    walked.measures = wider != nullptr;
    walked.counts = rounds_of != nullptr;
    walked.run(pool, forest, state, follow, forest.trie == &trie_ && tuning_.accepts_subtrees() ? &subtrees_ : nullptr, loops_, dfa_table_,
               tuning_);
    if (wider) {
        wider->rest = walked.rest + 3;  // a token may end inside a character
        for (const std::uint32_t piece : walked.exit_nodes) wider->deepest = std::max(wider->deepest, forest.trie->depth[piece] - 1u);
    }
    if (rounds_of) keep_rounds(pool, *forest.trie, walked, *rounds_of);
    const TrieId suffix_trie = suffix_tries_.after_exits(*forest.trie, walked.exit_nodes);
    TokenSetId tokens = keep(*forest.trie, walked, !forest.whole());
    std::erase_if(walked.to_verify, [&](std::uint32_t t) { return pool.dfa.nonempty_after(state, vocabulary_.token(t)); });
    if (!walked.to_verify.empty()) {
        write_row(tokens);
        clear_bits(row_, walked.to_verify);
        tokens = sets_.row(row_);
    }
    return {tokens, suffix_trie, kNoTokens};
}

WalkResult LeafResults::walk(Machine& machine, TrieId id, const Config& config) {
    const TrieForest& forest = suffix_tries_.forest(id);
    MachineWalk made = machine_walk(machine, forest, config, forest.trie == &trie_ ? &subtrees_ : nullptr, loops_, tuning_);
    const TrieId suffix_trie = suffix_tries_.after_exits(*forest.trie, made.walked.exit_nodes);
    const TokenSetId tokens = keep(*forest.trie, made.walked, !forest.whole());
    return {tokens, suffix_trie, made.context_dependent.empty() ? kNoTokens : sets_.sparse(made.context_dependent)};
}

// Sets `row` to the tokens at these places. If they are most of the vocabulary, begins with all tokens and clears the others.
void LeafResults::bits_of(const TokenTrie& x, std::span<const TokenRange> places, std::vector<std::uint32_t>& row) {
    const std::span<const std::uint32_t> tokens = x.tokens;
    if (&x != &trie_ || count_of(places) < x.tokens.size() / 2) {
        row.assign(words_, 0);
        for (const TokenRange& p : places) set_bits(row, tokens.subspan(p.begin, p.end - p.begin));
        return;
    }
    row = all_;
    std::uint32_t at = 0;
    for (const TokenRange& p : places) {
        GUIDEWAY_DCHECK(at <= p.begin);
        if (at < p.begin) clear_bits(row, tokens.subspan(at, p.begin - at));
        at = std::max(at, p.end);
    }
    clear_bits(row, tokens.subspan(at));
}

const std::vector<std::uint32_t>& LeafResults::tokens_up_to(std::uint8_t characters) {
    if (characters_.empty()) {
        characters_.assign(vocabulary_.size(), 255);
        for (std::uint32_t p = 0; p < trie_.tokens.size(); ++p) characters_[trie_.tokens[p]] = subtrees_.characters(p);
    }
    if (const auto known = up_to_.find(characters); known != up_to_.end()) return known->second;
    std::vector<std::uint32_t> row(words_);
    at_most(characters_, characters, row);
    counters.bytes += words_ * sizeof(std::uint32_t);
    return up_to_.emplace(characters, std::move(row)).first->second;
}

TokenSetId LeafResults::keep(const TokenTrie& x, LeafWalk& walked, bool disordered) {
    if (disordered) {  // a part of a forest may contain another one
        std::vector<TokenRange> places;
        places.swap(walked.places);
        std::sort(places.begin(), places.end(), [](const TokenRange& a, const TokenRange& b) { return a.begin < b.begin; });
        for (const TokenRange& p : places)
            if (!walked.places.empty() && p.begin <= walked.places.back().end)
                walked.places.back().end = std::max(walked.places.back().end, p.end);
            else walked.places.push_back(p);
    }
    GUIDEWAY_DCHECK(std::ranges::adjacent_find(walked.places, [](const TokenRange& a, const TokenRange& b) { return a.end > b.begin; }) ==
                    walked.places.end());
    const std::uint32_t count = count_of(walked.places);
    if (walked.limited.empty() && count <= words_ / 2) {
        std::vector<std::uint32_t> tokens;
        for (const TokenRange& p : walked.places) tokens.insert(tokens.end(), x.tokens.begin() + p.begin, x.tokens.begin() + p.end);
        std::sort(tokens.begin(), tokens.end());
        return sets_.sparse(tokens);
    }
    std::vector<std::uint32_t> row;
    bits_of(x, walked.places, row);
    for (const LeafWalk::Limited& some : walked.limited) {
        bits_of(x, some.places, scratch_);
        const auto& fit = tokens_up_to(some.characters);
        for (std::size_t i = 0; i < words_; ++i) row[i] |= scratch_[i] & fit[i];
    }
    return sets_.row(row);
}

}  // namespace guideway
