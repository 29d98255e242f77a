#include "guideway/mask/mask_engine.h"

#include <algorithm>

#include "guideway/base/error.h"
#include "guideway/base/simd.h"
#include "guideway/mask/substrings_walk.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxAlphabets = 32;     // that are cached; they are looked through one by one
constexpr std::uint32_t kFewNodes = 3000;     // of a trie of tokens of few bytes: 40 KB
constexpr unsigned kFewBytes = 16;            // whose tokens are seldom more
constexpr ByteSet kAscii{{~std::uint64_t{0}, ~std::uint64_t{0}, 0, 0}};
constexpr std::size_t kMaxDifference = 3000;  // nodes or tokens; beyond it a separate walk is as quick
constexpr std::size_t kMaxTried = 4000;       // tokens, one by one
constexpr std::uint64_t kRunWork = 100, kNodeWork = 10;  // of a run; of a node of a trie
constexpr std::size_t kWiderBytes = 64;       // of what is known of a run without bounds
constexpr std::size_t kFewTried = 300;        // before it is seen whether two walks at once are less

std::uint32_t count_of(std::span<const TokenRange> places) {
    std::uint32_t n = 0;
    for (const TokenRange& p : places) n += p.end - p.begin;
    return n;
}

}  // namespace

MaskEngine::MaskEngine(const TokenTable& vocabulary, std::size_t budget, Shortcuts shortcuts, Fuel& work)
    : vocabulary_(vocabulary), trie_(vocabulary.trie()), subtrees_(vocabulary.subtrees()), words_(vocabulary.words()),
      budget_(budget), shortcuts_(shortcuts), fuel_(work), sets_(words_), dfa_table_(vocabulary.longest()), suffix_tries_(trie_, vocabulary.longest(), work), forget_at_(budget / kShare), all_(words_, 0xffffffff) {
    const std::span<const std::uint32_t> starts = vocabulary.tokens().starts;
    const std::uint32_t size = vocabulary.size();
    if (size & 31) all_.back() = (1u << (size & 31)) - 1;
    for (std::uint32_t t = 0; t < size; ++t) {
        const std::uint32_t length = starts[t + 1] - starts[t];
        if (length == 0) all_[t >> 5] &= ~(1u << (t & 31));
        else if (length >= ExprPool::kNear) longest_first_.push_back(t);
    }
    std::stable_sort(longest_first_.begin(), longest_first_.end(), [&](std::uint32_t a, std::uint32_t b) { return vocabulary.token(a).size() > vocabulary.token(b).size(); });
}

std::uint32_t MaskEngine::component_id(const AnalysedNode& component) {
    return component.kind == NodeKind::leaf ? leaf_id(component.follow) : new_component();
}

// An id is never given back: a key of the memo may hold it.
std::uint32_t MaskEngine::new_component() {
    if (next_component_ == kInfinite)
        throw Error(ErrorKind::limit, "the vocabulary has numbered as many grammar nodes as 32 bits can name; compile with a new vocabulary");
    return next_component_++;
}

std::uint32_t MaskEngine::leaf_id(const ByteSet& follow) {
    if (const auto known = leaf_ids_.find(follow); known != leaf_ids_.end()) return known->second;
    return leaf_ids_.emplace(follow, new_component()).first->second;
}

std::uint32_t MaskEngine::next_automaton() {
    if (free_numbers_.empty()) {
        learned_.push_back(nullptr);
        free_numbers_.reserve(learned_.capacity());  // so that `forget` asks for no memory
        free_numbers_.push_back(static_cast<std::uint32_t>(learned_.size() - 1));
    }
    const std::uint32_t number = free_numbers_.back();
    learned_[number] = std::make_unique<AutomatonCache>();
    free_numbers_.pop_back();
    return number;
}

// Sets that its masks were made of stay until the next trim.
void MaskEngine::forget(std::uint32_t automaton) noexcept {
    learned_bytes_ -= learned_[automaton]->counted;
    learned_[automaton].reset();
    at_ = nullptr;
    free_numbers_.push_back(automaton);
}

// Room is made before it begins: its own is forgotten only with that of all others.
void MaskEngine::turn_to(std::uint32_t automaton) {
    if (at_) count_learned(*at_);  // an error may have left it uncounted
    at_ = learned_[automaton].get();
    at_->touch(++turn_);
    trim();
    at_->touch(turn_);  // if it forgot, that as well
}

void MaskEngine::count_learned(AutomatonCache& learned) {
    const std::size_t now = learned.bytes();
    learned_bytes_ += now - learned.counted;
    learned.counted = now;
}

void MaskEngine::count(std::uint32_t automaton) { count_learned(*learned_[automaton]); }

// The longest idle ones first, until they take so much at most all together; not those that were used lately.
void MaskEngine::forget_idle(std::size_t most) {
    std::vector<std::pair<std::uint64_t, AutomatonCache*>> idle;
    for (const auto& one : learned_)
        if (one && one->counted) idle.emplace_back(one->last, one.get());
    std::sort(idle.begin(), idle.end());
    for (const auto& [last, one] : idle) {
        if (learned_bytes_ <= most || last + kLately > turn_) return;
        learned_bytes_ -= one->counted;
        one->forget();
        one->state_sets.forget();
        one->machine.forget();
    }
}

void MaskEngine::forget_learned() {
    for (const auto& one : learned_)
        if (one) one->forget();
    learned_bytes_ = 0;
}

void MaskEngine::clear() {
    memo_.clear();
    sets_ = TokenSets(words_);
    loops_.clear();
    dfa_table_.clear();
    suffix_tries_.clear();
    superset_bounds_.clear();
    rounds_.clear();
    std::fill(std::begin(structural_), std::end(structural_), 0);
    few_.clear();
    forget_learned();
    frame_summaries_.clear();
    used_ = 0;
    forget_rows();
}

// What is made anew at little cost.
void MaskEngine::forget_rows() {
    up_to_.clear();
    joined_.clear();
    punctuation_.clear();
}

void MaskEngine::trim() {
    if (learned_bytes_ > forget_at_) {
        const std::size_t some = budget_ / kShare / 4;
        forget_idle(3 * some);
        forget_at_ = std::max(4 * some, learned_bytes_ + some);  // all may be in use: they are not checked at each mask
    }
    if (used() <= budget_) return;
    std::vector<std::uint32_t> times;
    memo_.each([&](const Key&, const Known& known) { times.push_back(known.time); });
    for (const auto& [key, made] : frame_summaries_) times.push_back(made.time);
    if (!times.empty()) {
        auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        drop_before(*middle + 1);
    }
    if (used() > budget_) clear();
}

// Keeps what was used since, and what that needs. A run over a trie that no user leads to any more goes as well.
void MaskEngine::drop_before(std::uint32_t time) {
    used_ = 0;
    forget_learned();
    memo_.erase_if([&](const Key&, const Known& known) { return known.time < time; });
    std::erase_if(frame_summaries_, [&](const auto& entry) { return entry.second.time < time; });
    std::vector<bool> sets, tries(suffix_tries_.count() + 1);
    auto use = [&](std::uint32_t set) {
        if (set == kNoTokens) return;
        if (sets.size() <= set) sets.resize(set + 1);
        sets[set] = true;
    };
    tries[0] = true;
    for (std::uint32_t trie : structural_) tries[trie] = true;
    for (const auto& [bytes, trie] : few_) tries[trie] = true;
    memo_.each([&](const Key&, const Known& known) { tries[known.run.suffix_trie] = true; });
    for (const auto& [key, made] : frame_summaries_) {
        for (std::uint32_t trie : made.exits) tries[trie] = true;
        for (std::uint32_t set : made.sets) use(set);
    }
    std::erase_if(frame_summaries_, [&](const auto& entry) { return !tries[entry.first.trie]; });
    for (const auto& [key, made] : frame_summaries_) used_ += made.bytes();
    memo_.erase_if([&](const Key& key, const Known&) { return !tries[key.trie]; });
    memo_.each([&](const Key&, const Known& known) {
        use(known.run.tokens);
        use(known.run.context_dependent);
    });
    std::erase_if(rounds_, [&](const auto& entry) { return !memo_.find(entry.first); });
    for (const auto& [key, kept] : rounds_) used_ += kept.bytes();
    std::erase_if(superset_bounds_, [&](const auto& entry) { return !memo_.find(entry.first); });
    used_ += memo_.size() * kRunBytes + superset_bounds_.size() * kWiderBytes;
    forget_rows();
    sets_.sweep(sets);
    suffix_tries_.sweep(tries);
    loops_.clear();
    dfa_table_.clear();
}

const WalkResult& MaskEngine::run(Machine& machine, std::uint32_t trie, const Config& config, bool bare) {
    const bool leaf = machine.is_leaf(config);
    bare &= leaf && trie == 0;
    Key key{trie, machine.component(config.node).id, config.state, leaf ? bare : config.regs};
    if (leaf) key.state = clipped(machine.pool(), trie, config.state);
    if (Known* known = memo_.find(key)) {
        hits_.fetch_add(1, std::memory_order_relaxed);
        known->time = time_;
        return known->run;
    }
    fuel_.spend(kRunWork + words_ / 8);
    ++misses_;
    ++time_;
    WalkResult made{};
    Config at = config;
    at.state = key.state;
    const bool clipped = at.state != config.state;
    const bool difference = leaf && trie == 0 && machine.pool().is_difference(at.state);
    // What other counts have left after costs nothing, so it is requested first; its own walk only where no table serves.
    auto shorter = [&] {
        if (difference) return !bare && (walk_difference(machine, at, made) || walk_superset(machine, at, kMaxTried, made));
        if (!bare && walk_without_loop_bounds(machine, at, false, made)) return true;
        if (walk_plain_tokens(machine, at, bare, made)) return true;
        return !bare && (walk_without_loop_bounds(machine, at, true, made) || walk_superset(machine, at, kFewTried, made) ||
                         walk_difference(machine, at, made) || walk_superset(machine, at, kMaxTried, made));
    };
    at_node(config.node, [&] {
        const bool cuts = leaf && is_substring_leaf(machine.pool(), at.state);  // no other walk is shorter
        const std::uint32_t over = leaf && trie == 0 && !cuts ? alphabet_slice(machine.pool(), at.state) : trie;
        if (!leaf) made = walk(machine, trie, at);
        else if (walk_composite(machine, trie, at, made)) {}
        else if (trie != 0 && walk_as_base(machine, trie, at, made)) {}
        else if (over != 0 || cuts || !shorter())
            made = walk_leaf(machine.pool(), over, at.state, machine.component(config.node).follow, nullptr, clipped && over == 0 ? &key : nullptr);
    });
    used_ += kRunBytes;
    return memo_.add(key, {made, time_}).run;
}

// Whether the state loops by all plain characters. The space is tested first, since most states do not loop
// by it, and to find the whole class is expensive (decision 7).
bool MaskEngine::accepts_plain_tokens(ExprPool& pool, ExprId state, bool exact) {
    if (!pool.is_unbounded(state)) return false;
    const ExprId behind = pool.derivative(state, ' ');
    if (behind != state && (exact || behind == kNone || !pool.has_summand(behind, state))) return false;
    const SelfLoops* const loops = loops_.find(pool, subtrees_, state, exact);
    return loops && PlainTokens::accepted_by(*loops);
}

// All plain tokens that the state has characters left for, by a table; only the structural ones are walked.
bool MaskEngine::walk_plain_tokens(Machine& machine, const Config& config, bool bare, WalkResult& made) {
    ExprPool& pool = machine.pool();
    const ExprPool::Unbounded state = pool.unbounded(config.state);
    if (!shortcuts_.subtrees || pool.nullable(state.expr)) return false;
    ExprId like = state.left == kInfinite ? kNone : state.expr;  // whose run has the same plain tokens, if it is not to be cut
    if (!accepts_plain_tokens(pool, state.expr, true)) {  // what one part of a sum takes, the sum takes; it is not left before the quote
        if (state.left != kInfinite || !pool.ends_in(state.expr, '"')) return false;
        pool.each_summand(state.expr, [&](ExprId part) {
            const bool good = accepts_plain_tokens(pool, part, false);
            if (good) like = part;
            return good;
        });
        if (like == kNone) return false;
        if (like == state.expr) like = kNone;
    }
    const PlainTokens& plain = vocabulary_.plain_tokens();
    for (const auto kind : {PlainTokens::control, PlainTokens::longer, PlainTokens::rest})
        if (!structural_[kind]) structural_[kind] = suffix_tries_.of(TokenTrie::over(plain.structural(kind).block(), vocabulary_.size()));
    static const ByteSet controls = ByteSet::range(0, 0x1f);
    Config there = config;
    std::vector<std::uint32_t> suffix_tries;
    auto structural = [&](ExprId at) {
        std::vector<std::uint32_t> tokens;
        there.state = at;
        suffix_tries.clear();
        for (const auto kind : {PlainTokens::control, PlainTokens::longer, PlainTokens::rest}) {
            if (kind == PlainTokens::control && !pool.first(state.expr).meets(controls)) continue;
            const WalkResult one = run(machine, structural_[kind], there);
            sets_.append(one.tokens, tokens);
            if (one.suffix_trie) suffix_tries.push_back(one.suffix_trie);
        }
        std::sort(tokens.begin(), tokens.end());
        return tokens;
    };
    std::vector<std::uint32_t> tokens = structural(config.state);
    made = {kNoTokens, suffix_tries.size() == 1 ? suffix_tries[0] : suffix_tries_.joined(suffix_tries), kNoTokens};
    const std::uint32_t left = std::min(state.left, plain.most_characters());
    if (like != kNone && shortcuts_.deltas && !bare) {
        there.state = like;
        const std::uint32_t base = run(machine, 0, there).tokens;
        std::vector<std::uint32_t> of_base = structural(like), cleared, added;
        std::set_difference(of_base.begin(), of_base.end(), tokens.begin(), tokens.end(), std::back_inserter(cleared));
        std::set_difference(tokens.begin(), tokens.end(), of_base.begin(), of_base.end(), std::back_inserter(added));
        const auto longer = plain.longer_than(left);
        if (sets_[base].form == TokenSet::Form::dense && longer.size() + cleared.size() <= kMaxDifference && !suffix_tries_.meets(made.suffix_trie, cleared)) {
            cleared.insert(cleared.end(), longer.begin(), longer.end());
            made.tokens = sets_.delta(base, std::move(cleared), added);
            return true;
        }
    }
    auto put = [](std::span<const std::uint32_t> some, std::vector<std::uint32_t>& row) {
        for (std::uint32_t t : some) row[t >> 5] |= 1u << (t & 31);
    };
    if (plain_row_.empty()) {
        plain_row_ = all_;
        for (const auto kind : {PlainTokens::control, PlainTokens::longer, PlainTokens::rest})
            for (const std::uint32_t t : plain.structural(kind).tokens) plain_row_[t >> 5] &= ~(1u << (t & 31));
    }
    std::vector<std::uint32_t> row = plain_row_;
    if (left < plain.most_characters()) {
        row.assign(words_, 0);
        put(plain.up_to(left), row);
    }
    put(tokens, row);
    made.tokens = sets_.row(row);
    return true;
}

// Loop bodies are recorded only for the whole vocabulary: over short suffix tries few counts occur, and to walk states
// without bounds costs more there than it saves (decision 7).
ExprId MaskEngine::clipped(ExprPool& pool, std::uint32_t trie, ExprId state) const {
    return shortcuts_.clips ? pool.saturate_counters(state, suffix_tries_.reach(trie), trie == 0) : state;
}

// Whether the run of a leaf's state over the whole vocabulary is known.
bool MaskEngine::knows(Machine& machine, const Config& config, ExprId state) {
    return memo_.find({0, machine.component(config.node).id, clipped(machine.pool(), 0, state), 0}) != nullptr;
}

// The run of the state that most bytes lead to, and what differs.
bool MaskEngine::walk_difference(Machine& machine, const Config& config, WalkResult& made) {
    if (!shortcuts_.deltas) return false;
    ExprPool& pool = machine.pool();
    const ExprId base = pool.delta_base(config.state);
    if (base <= kEmpty || base == config.state) return false;
    // Two walks at once pay where the base's own run needs none: it is a string that continues, or known.
    if (!pool.is_difference(config.state) && !accepts_plain_tokens(pool, base, true) && !knows(machine, config, base)) return false;
    const auto difference = pair_walk(pool, trie_, config.state, base, kMaxDifference);
    if (!difference) return false;
    Config there = config;
    there.state = base;
    const WalkResult run_of_base = run(machine, 0, there);
    if (run_of_base.context_dependent != kNoTokens) return false;
    made = run_of_base;
    made.tokens = sets_.changed(run_of_base.tokens, difference->cleared, difference->added);
    return true;
}

// A difference, where none of the trie's texts spells one of those that are taken away: as what it is taken from.
bool MaskEngine::walk_as_base(Machine& machine, std::uint32_t trie, const Config& config, WalkResult& made) {
    const TrieForest grove = suffix_tries_.grove(trie);
    if (!shortcuts_.deltas || !grove.whole()) return false;
    Config there = config;
    there.state = machine.pool().taken_from(config.state);
    if (there.state == kNone) return false;
    const auto difference = text_walk(machine.pool(), *grove.trie, config.state, there.state, kMaxDifference);
    if (!difference || !difference->cleared.empty()) return false;
    made = run(machine, trie, there);
    return true;
}

const MaskEngine::Known& MaskEngine::superset_result(Machine& machine, const Config& config, SupersetBounds& wider) {
    const AnalysedNode& component = machine.component(config.node);
    const Key key{0, component.id, config.state, 0};
    Known* known = memo_.find(key);
    const auto met = superset_bounds_.find(key);
    if (known && met != superset_bounds_.end()) {
        wider = met->second;
        known->time = time_;
        return *known;
    }
    const WalkResult made = walk_leaf(machine.pool(), alphabet_slice(machine.pool(), config.state), config.state, component.follow, &wider);
    if (met == superset_bounds_.end()) used_ += kWiderBytes;
    superset_bounds_[key] = wider;
    if (known) return *known;
    used_ += kRunBytes;
    return memo_.add(key, {made, time_});
}

// The run of the state without bounds, but for the tokens that are too long.
bool MaskEngine::walk_superset(Machine& machine, const Config& config, std::size_t most_tried, WalkResult& made) {
    if (!shortcuts_.clips) return false;
    ExprPool& pool = machine.pool();
    bool quick = false;  // one part of a sum takes whole subtrees
    if (!pool.boolean(config.state))
        pool.each_summand(config.state, [&](ExprId part) { return quick = loops_.find(pool, subtrees_, part, false) != nullptr; });
    if (quick) return false;
    const ExprPool::Superset relaxed = pool.superset(config.state);
    if (relaxed.expr == config.state || relaxed.expr <= kEmpty) return false;
    Config there = config;
    there.state = relaxed.expr;
    SupersetBounds wider;
    const WalkResult run = superset_result(machine, there, wider).run;
    const std::uint32_t needed = pool.boolean(config.state) ? wider.rest : 0;
    const std::uint32_t most = std::min(relaxed.early, relaxed.exact_up_to - std::min(relaxed.exact_up_to, needed));
    if (wider.deepest > most || most + 1 < ExprPool::kNear || run.context_dependent != kNoTokens) return false;
    write_row(run.tokens);
    std::vector<std::uint32_t> cleared;
    std::size_t tried = 0;
    for (const std::uint32_t t : longest_first_) {
        const std::string_view text = vocabulary_.token(t);
        if (text.size() <= most) break;
        if (!(row_[t >> 5] >> (t & 31) & 1)) continue;
        if (++tried > most_tried) return false;
        if (!lives(pool, config.state, text)) cleared.push_back(t);
    }
    made = but_for(run, std::move(cleared));
    return true;
}

// The tokens of a set, as the row that is at hand.
void MaskEngine::write_row(std::uint32_t set) {
    row_.resize(words_);
    sets_.write(set, row_);
    sets_.change(set, row_);
}

bool MaskEngine::lives(ExprPool& pool, ExprId state, std::string_view token) {
    fuel_.spend(token.size());
    return pool.nonempty_after(state, token);
}

// The row at hand holds the run's tokens, `cleared` among them. A run that is a delta clears tokens of its suffix trie too: it
// stays a delta of the same base, or its suffix trie loses them.
WalkResult MaskEngine::but_for(const WalkResult& run, std::vector<std::uint32_t>&& cleared) {
    WalkResult made = run;
    if (cleared.empty()) return made;
    std::sort(cleared.begin(), cleared.end());
    const TokenSet::Form form = sets_[run.tokens].form;
    if (shortcuts_.deltas && form != TokenSet::Form::sparse && !suffix_tries_.meets(run.suffix_trie, cleared)) {
        made.tokens = sets_.changed(run.tokens, std::move(cleared), {});
        return made;
    }
    if (form == TokenSet::Form::delta) made.suffix_trie = without(run.suffix_trie, sets_[run.tokens].taken());
    for (const std::uint32_t t : cleared) row_[t >> 5] &= ~(1u << (t & 31));
    made.tokens = sets_.row(row_);
    return made;
}

// A suffix trie without what a delta clears.
std::uint32_t MaskEngine::without(std::uint32_t suffix_trie, std::span<const std::uint32_t> taken) {
    std::vector<std::uint32_t> cleared(taken.begin(), taken.end());
    std::sort(cleared.begin(), cleared.end());
    return suffix_tries_.meets(suffix_trie, cleared) ? suffix_tries_.without(suffix_trie, cleared) : suffix_trie;
}

// The run of the state that does not count how often units come, but for tokens with too many of them. `walks`: if it is not
// known yet, too.
bool MaskEngine::walk_without_loop_bounds(Machine& machine, const Config& config, bool walks, WalkResult& made) {
    if (!shortcuts_.clips) return false;
    ExprPool& pool = machine.pool();
    const ExprPool::Superset unbounded = pool.without_loop_bounds(config.state);
    if (unbounded.expr == config.state) return false;
    const AnalysedNode& component = machine.component(config.node);
    const Key key{0, component.id, unbounded.expr, 0};
    Known* known = memo_.find(key);
    if (!known && walks) {
        const WalkResult run = walk_leaf(pool, 0, unbounded.expr, component.follow, nullptr, &key);
        used_ += kRunBytes;
        known = &memo_.add(key, {run, time_});
    }
    const auto rounds = rounds_.find(key);
    if (!known || known->run.context_dependent != kNoTokens || rounds == rounds_.end() || unbounded.loop_body > rounds->second.units || rounds->second.at_pieces > unbounded.exact_up_to) return false;
    known->time = time_;
    write_row(known->run.tokens);
    std::vector<std::uint32_t> cleared;
    for (const auto& [token, begun] : rounds->second.tokens) {
        if (begun <= unbounded.exact_up_to || !(row_[token >> 5] >> (token & 31) & 1)) continue;
        if (!lives(pool, config.state, vocabulary_.token(token))) cleared.push_back(token);
    }
    made = but_for(known->run, std::move(cleared));
    return true;
}

// The tokens that a string in few ASCII characters can take, as a trie: a walk over all tokens mostly reaches bytes that it
// cannot take. 0: too many, or no such string.
std::uint32_t MaskEngine::alphabet_slice(ExprPool& pool, ExprId state) {
    if (!shortcuts_.subtrees || !pool.ends_in(state, '"')) return 0;
    // The first bytes, also those after the opening quote, are mostly too many already. To find all bytes is expensive.
    if (!pool.boolean(state)) {
        const ByteSet first = pool.first(state);
        if (is_large_alphabet(first.size() == 1 ? pool.first(pool.derivative(state, static_cast<std::uint8_t>(first.from(0)))) : first)) return 0;
    }
    const ByteSet bytes = pool.alphabet(state);
    if (!bytes.within(kAscii)) return 0;
    if (const std::uint32_t* known = known_slice(bytes)) return *known;
    if (few_.size() >= kMaxAlphabets) return 0;
    return few_.emplace_back(bytes, suffix_tries_.of_bytes(bytes, kFewNodes)).second;
}

const std::uint32_t* MaskEngine::known_slice(const ByteSet& bytes) const {
    for (const auto& [known, trie] : few_)
        if (trie ? bytes.within(known) : known.within(bytes)) return &trie;
    return nullptr;
}

bool MaskEngine::is_large_alphabet(const ByteSet& bytes) {
    if (!bytes.within(kAscii)) return true;
    if (bytes.size() < kFewBytes) return false;
    if (const std::uint32_t* known = known_slice(bytes)) return *known == 0;
    if (few_.size() >= kMaxAlphabets) return true;  // no more are cached
    if (!suffix_tries_.are_over(bytes, kFewNodes)) return false;
    few_.emplace_back(bytes, 0);
    return true;
}

void MaskEngine::keep_rounds(ExprPool& pool, const TokenTrie& x, const LeafWalk& walked, const Key& key) {
    Rounds& kept = rounds_[key] = {{}, walked.counts ? walked.rounds_at_pieces : kInfinite, pool.loop_bodies()};
    if (walked.counts) {
        for (const auto& [places, begun] : walked.rounds)
            for (std::uint32_t p = places.begin; p < places.end; ++p) kept.tokens.emplace_back(x.tokens[p], begun);
    }
    used_ += kept.bytes();
}

// `rounds_of`: the key to keep rounds by, where the state no longer counts all its units; null.
WalkResult MaskEngine::walk_leaf(ExprPool& pool, std::uint32_t id, ExprId state, const ByteSet& follow, SupersetBounds* wider, const Key* rounds_of) {
    const TrieForest grove = suffix_tries_.grove(id);
    LeafWalk walked;
    walked.measures = wider != nullptr;
    walked.counts = rounds_of != nullptr;
    walked.run(pool, grove, state, follow, grove.trie == &trie_ && shortcuts_.subtrees ? &subtrees_ : nullptr, loops_, dfa_table_);
    if (wider) {
        wider->rest = walked.rest + 3;  // a token may end inside a character
        for (const std::uint32_t piece : walked.exit_nodes) wider->deepest = std::max(wider->deepest, grove.trie->depth[piece] - 1u);
    }
    if (rounds_of) keep_rounds(pool, *grove.trie, walked, *rounds_of);
    const std::uint32_t suffix_trie = suffix_tries_.behind(*grove.trie, walked.exit_nodes);
    std::uint32_t tokens = keep(*grove.trie, walked, !grove.whole());
    std::erase_if(walked.to_verify, [&](std::uint32_t t) { return pool.nonempty_after(state, vocabulary_.token(t)); });
    if (!walked.to_verify.empty()) {
        write_row(tokens);
        for (const std::uint32_t t : walked.to_verify) row_[t >> 5] &= ~(1u << (t & 31));
        tokens = sets_.row(row_);
    }
    return {tokens, suffix_trie, kNoTokens};
}

WalkResult MaskEngine::walk(Machine& machine, std::uint32_t id, const Config& config) {
    const TrieForest grove = suffix_tries_.grove(id);
    const TokenTrie& x = *grove.trie;
    const bool vocabulary = &x == &trie_;
    const ByteSet& follow = machine.component(config.node).follow;
    Configs path{{config.node, config.state, config.regs, kBottom}};  // configurations of all depths, one after the other
    std::vector<std::size_t> begin{0, 1};                             // depth d: [begin[d], begin[d + 1])
    std::vector<ChildFilter> leaps(1);                                  // by depth
    LeafWalk walked;
    std::vector<std::uint32_t> context_dependent;
    Configs made;
    // One leaf alone, and all below loops in it.
    auto take_all = [&](std::uint32_t node) {
        if (!vocabulary || !shortcuts_.subtrees || made.size() != 1 || !machine.is_leaf(made[0])) return false;
        const SelfLoops* loops = loops_.find(machine.pool(), subtrees_, made[0].state, true);
        return loops && subtrees_.loop(node, *loops, machine.pool().nullable(made[0].state) ? machine.component(made[0].node).follow : ByteSet{});
    };
    auto enter = [&](std::size_t depth, std::uint32_t node) {
        leaps.resize(depth + 1);
        leaps[depth] = {};
        if (!x.wide(node) || !shortcuts_.subtrees || (depth == 0 && !grove.whole())) return;
        ByteSet bytes;
        for (std::size_t c = begin[depth]; c < path.size(); ++c) bytes |= path[c].node == kDone ? follow : machine.begins(path[c]);
        leaps[depth] = ChildFilter(x, node, bytes);
    };
    enter(0, 0);
    std::size_t at = 0;
    for (std::uint32_t i = grove.parts[0].begin; at < grove.parts.size();) {
        if (i >= grove.parts[at].end) {
            if (++at < grove.parts.size()) i = grove.parts[at].begin;
            continue;
        }
        const std::size_t depth = x.depth[i] - grove.parts[at].above;
        if (const std::uint32_t next = leaps[depth - 1].next(x, i); next != i) {
            i = next;
            continue;
        }
        begin.resize(depth + 1);
        path.resize(begin[depth], Config{});
        Outcome outcome;
        made.clear();
        fuel_.spend(kNodeWork * (1 + begin[depth] - begin[depth - 1]));
        for (std::size_t c = begin[depth - 1]; c < begin[depth]; ++c) machine.step(path[c], x.byte[i], made, outcome);
        if (made.size() > 1) {
            std::sort(made.begin(), made.end());
            made.erase(std::unique(made.begin(), made.end()), made.end());
        }
        if (outcome.context_dependent) {  // what is above decides, token by token
            context_dependent.insert(context_dependent.end(), x.tokens.begin() + x.first_token[i], x.tokens.begin() + x.first_token[x.end[i]]);
            i = x.end[i];
            continue;
        }
        if (outcome.popped && follow.contains(x.byte[i])) walked.exit_nodes.push_back(i);
        if (made.empty()) {
            i = x.end[i];
            continue;
        }
        if (x.end[i] > i + 1 && take_all(i)) {
            walked.add(x.first_token[i], x.first_token[x.end[i]]);
            i = x.end[i];
            continue;
        }
        path.insert(path.end(), made.begin(), made.end());
        begin.push_back(path.size());
        walked.add(x.first_token[i], x.first_token[i + 1]);
        if (x.end[i] > i + 1) enter(depth, i);
        ++i;
    }
    const std::uint32_t suffix_trie = suffix_tries_.behind(x, walked.exit_nodes);
    std::sort(context_dependent.begin(), context_dependent.end());
    context_dependent.erase(std::unique(context_dependent.begin(), context_dependent.end()), context_dependent.end());
    return {keep(x, walked, !grove.whole()), suffix_trie, context_dependent.empty() ? kNoTokens : sets_.sparse(context_dependent)};
}

// Sets the bits of the tokens at these places: one by one, or of all but the others.
void MaskEngine::bits_of(const TokenTrie& x, std::span<const TokenRange> places, std::vector<std::uint32_t>& row) {
    auto put = [&](std::uint32_t begin, std::uint32_t end, bool on) {
        for (std::uint32_t p = begin; p < end; ++p) {
            const std::uint32_t t = x.tokens[p];
            if (on) row[t >> 5] |= 1u << (t & 31);
            else row[t >> 5] &= ~(1u << (t & 31));
        }
    };
    if (&x != &trie_ || count_of(places) < x.tokens.size() / 2) {
        row.assign(words_, 0);
        for (const TokenRange& p : places) put(p.begin, p.end, true);
        return;
    }
    row = all_;
    std::uint32_t at = 0;
    for (const TokenRange& p : places) {
        put(at, p.begin, false);
        at = p.end;
    }
    put(at, static_cast<std::uint32_t>(x.tokens.size()), false);
}

const std::vector<std::uint32_t>& MaskEngine::tokens_up_to(std::uint8_t characters) {
    if (characters_.empty()) {
        characters_.assign(vocabulary_.size(), 255);
        for (std::uint32_t p = 0; p < trie_.tokens.size(); ++p) characters_[trie_.tokens[p]] = subtrees_.characters(p);
    }
    auto [place, fresh] = up_to_.try_emplace(characters);
    if (fresh) {
        used_ += words_ * sizeof(std::uint32_t);
        place->second.assign(words_, 0);
        at_most(characters_, characters, place->second);
    }
    return place->second;
}

std::uint32_t MaskEngine::keep(const TokenTrie& x, LeafWalk& walked, bool disordered) {
    if (disordered) {  // parts of a grove may hold each other
        std::vector<TokenRange> places;
        places.swap(walked.places);
        std::sort(places.begin(), places.end(), [](const TokenRange& a, const TokenRange& b) { return a.begin < b.begin; });
        for (const TokenRange& p : places)
            if (!walked.places.empty() && p.begin <= walked.places.back().end) walked.places.back().end = std::max(walked.places.back().end, p.end);
            else walked.places.push_back(p);
    }
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
