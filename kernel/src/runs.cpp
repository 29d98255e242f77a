#include "guideway/runs.h"

#include <algorithm>

#include "guideway/vocabulary.h"

namespace guideway {

namespace {

constexpr char kSpace[] = {' ', '\t', '\n', '\r'};
constexpr std::size_t kRunBytes = 96;         // of an entry of the memo
constexpr std::size_t kMaxMerged = 3000;      // nodes of a residual that is a trie of its own
constexpr std::size_t kMaxDifference = 3000;  // nodes or tokens; beyond it a walk of its own is as quick

std::uint32_t count_of(std::span<const Places> places) {
    std::uint32_t n = 0;
    for (const Places& p : places) n += p.end - p.begin;
    return n;
}

}  // namespace

Runs::Runs(const Vocabulary& vocabulary, std::size_t budget, Shortcuts shortcuts)
    : vocabulary_(vocabulary), trie_(vocabulary.trie()), subtrees_(vocabulary.subtrees()), words_(vocabulary.words()),
      budget_(budget), shortcuts_(shortcuts), sets_(words_) {}

std::uint32_t Runs::component_id(const Component& component) {
    return component.kind == NodeKind::leaf ? leaf_id(component.follow) : next_component_++;
}

std::uint32_t Runs::leaf_id(const ByteSet& follow) {
    auto [place, fresh] = leaf_ids_.emplace(follow, next_component_);
    if (fresh) ++next_component_;
    return place->second;
}

void Runs::clear() {
    memo_.clear();
    masks_.clear();
    calls_.clear();
    sets_ = TokenSets(words_);
    loops_.clear();
    residuals_.clear();
    free_residuals_.clear();
    residual_ids_.clear();
    smooth_.reset();
    std::fill(std::begin(rough_), std::end(rough_), 0);
    smooth_up_to_.clear();
    exits_.clear();
    free_exits_.clear();
    used_ = 0;
}

void Runs::trim() {
    if (used() <= budget_) return;
    std::vector<std::uint32_t> times;
    for (const auto& [key, known] : memo_) times.push_back(known.time);
    for (const auto& [place, mask] : masks_) times.push_back(mask.time.load(std::memory_order_relaxed));
    for (const auto& [key, made] : calls_) times.push_back(made.time);
    if (!times.empty()) {
        auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        drop_before(*middle + 1);
    }
    if (used() > budget_) clear();
}

// Keeps what was used since, and what that needs. A run over a trie that nobody leads to any more goes as well.
void Runs::drop_before(std::uint32_t time) {
    std::erase_if(masks_, [&](const auto& entry) {
        if (entry.second.time.load(std::memory_order_relaxed) >= time) return false;
        used_ -= entry.second.bytes();
        return true;
    });
    std::erase_if(calls_, [&](const auto& entry) {
        if (entry.second.time >= time) return false;
        used_ -= entry.second.bytes();
        return true;
    });
    auto forget = [&](const Run& run) {
        used_ -= kRunBytes;
        if (run.exits == kNoTokens) return;
        used_ -= exits_[run.exits].size() * 8 + 48;
        exits_[run.exits] = {};
        free_exits_.push_back(run.exits);
    };
    std::erase_if(memo_, [&](const auto& entry) {
        if (entry.second.time >= time) return false;
        forget(entry.second.run);
        return true;
    });
    std::vector<bool> sets, tries(residuals_.size() + 1);
    auto use = [&](std::uint32_t set) {
        if (set == kNoTokens) return;
        if (sets.size() <= set) sets.resize(set + 1);
        sets[set] = true;
    };
    tries[0] = true;
    for (std::uint32_t trie : rough_) tries[trie] = true;
    for (std::uint32_t set : smooth_up_to_) use(set);
    for (const auto& [key, known] : memo_) {
        tries[known.run.residual] = true;
        if (known.run.exits != kNoTokens)
            for (const auto& [label, trie] : exits_[known.run.exits]) tries[trie] = true;
    }
    for (const auto& [key, made] : calls_) {
        for (std::uint32_t trie : made.pops) tries[trie] = true;
        for (std::uint32_t set : made.sets) use(set);
    }
    std::erase_if(calls_, [&](const auto& entry) {
        if (tries[entry.first.trie]) return false;
        used_ -= entry.second.bytes();
        return true;
    });
    std::erase_if(memo_, [&](const auto& entry) {
        if (tries[entry.first.trie]) return false;
        forget(entry.second.run);
        return true;
    });
    for (const auto& [key, known] : memo_) {
        use(known.run.tokens);
        use(known.run.unsure);
    }
    for (const auto& [place, mask] : masks_) {
        use(mask.first);
        use(mask.last);
        for (std::uint32_t set : mask.more) use(set);
    }
    sets_.sweep(sets);
    std::erase_if(residual_ids_, [&](const auto& entry) {
        if (tries[entry.second]) return false;
        used_ -= residuals_[entry.second - 1]->bytes();
        residuals_[entry.second - 1].reset();
        free_residuals_.push_back(entry.second);
        return true;
    });
    loops_.clear();
}

// What a leaf has read does not matter, unless there was something unsure.
auto Runs::find(const Machine& machine, std::uint32_t automaton, const Config& c) const {
    Place place{automaton, c};
    if (!machine.is_leaf(c) || c.regs == 0) return masks_.find(place);
    place.config.regs = 0;
    const auto known = masks_.find(place);
    return known == masks_.end() || !known->second.unsure ? known : masks_.find({automaton, c});
}

std::optional<bool> Runs::fill_known(const Machine& machine, std::uint32_t automaton, std::span<const Config> configs,
                                     std::span<std::uint32_t> row) const {
    bool accepting = false, blank = true;
    for (const Config& c : configs) {
        const auto known = find(machine, automaton, c);
        if (known == masks_.end() || (!blank && sets_[known->second.first].form == TokenSet::Form::delta)) return std::nullopt;
        write(known->second, blank, row);
        accepting |= known->second.accepting;
        blank = false;
        known->second.time.store(time_, std::memory_order_relaxed);
    }
    if (blank) std::fill(row.begin(), row.end(), 0);
    hits_.fetch_add(1, std::memory_order_relaxed);
    return accepting;
}

bool Runs::fill(Machine& machine, std::uint32_t automaton, std::span<const Config> configs, std::span<std::uint32_t> row) {
    trim();
    bool accepting = false, blank = true;
    for (const Config& c : configs) {
        const Mask& made = mask(machine, automaton, c);
        accepting |= made.accepting;
        if (blank || sets_[made.first].form != TokenSet::Form::delta) write(made, blank, row);
        else {  // what it clears concerns no other configuration
            row_.resize(words_);
            write(made, true, row_);
            for (std::size_t i = 0; i < words_; ++i) row[i] |= row_[i];
        }
        blank = false;
    }
    if (blank) std::fill(row.begin(), row.end(), 0);
    return accepting;
}

void Runs::write(const Mask& mask, bool blank, std::span<std::uint32_t> row) const {
    if (blank) sets_.write(mask.first, row);
    else sets_.merge(mask.first, row);
    for (std::uint32_t set : mask.more) sets_.merge(set, row);
    sets_.change(mask.first, row);
    if (mask.last != kNoTokens) sets_.merge(mask.last, row);
}

const Runs::Mask& Runs::mask(Machine& machine, std::uint32_t automaton, const Config& config) {
    if (const auto known = find(machine, automaton, config); known != masks_.end()) {
        known->second.time.store(time_, std::memory_order_relaxed);
        return known->second;
    }
    Mask made;
    Place place{automaton, config};
    find_mask(machine, config, made);
    made.accepting = machine.accepting(config);
    if (machine.is_leaf(config)) {
        place.config.regs = 0;
        if (made.unsure) {
            masks_[place].unsure = true;  // says that one must look again
            place.config = config;
        }
    }
    Mask& kept = masks_[place];
    kept.first = made.first;
    kept.last = made.last;
    kept.unsure = made.unsure;
    kept.more = std::move(made.more);
    kept.accepting = made.accepting;
    kept.time.store(time_, std::memory_order_relaxed);
    used_ += kept.bytes();
    return kept;
}

// All smooth tokens that the state has characters left for; the rough ones are still to be walked.
bool Runs::take_smooth(Machine& machine, const Config& config, Mask& mask) {
    ExprPool& pool = machine.pool();
    const ExprPool::Unbounded state = pool.unbounded(config.state);
    if (pool.nullable(state.expr)) return false;
    const Loops* loops = loops_.find(pool, subtrees_, state.expr, true);
    if (!loops || !SmoothTokens::taken_by(*loops)) return false;
    if (!smooth_) smooth_ = std::make_unique<SmoothTokens>(vocabulary_);
    static const ByteSet controls = ByteSet::range(0, 0x1f);
    for (const auto kind : {SmoothTokens::control, SmoothTokens::longer, SmoothTokens::rest}) {
        if (!rough_[kind]) {
            Residual made;
            made.trie = smooth_->take_rough(kind);
            rough_[kind] = keep_residual(std::move(made));
        }
        if (kind != SmoothTokens::control || pool.live(state.expr).meets(controls)) tasks_.push_back({rough_[kind], config});
    }
    mask.first = smooth_up_to(state.left);
    return true;
}

std::uint32_t Runs::smooth_up_to(std::uint32_t characters) {
    characters = std::min(characters, smooth_->most_characters());
    if (smooth_up_to_.size() <= characters) smooth_up_to_.resize(smooth_->most_characters() + 1, kNoTokens);
    std::uint32_t& made = smooth_up_to_[characters];
    if (made != kNoTokens) return made;
    const auto longer = smooth_->longer_than(characters), others = smooth_->up_to(characters);
    if (!longer.empty() && longer.size() <= kMaxDifference)
        return made = sets_.delta(smooth_up_to(smooth_->most_characters()), {longer.begin(), longer.end()}, {});
    std::vector<std::uint32_t> row(words_);
    for (std::uint32_t t : others) row[t >> 5] |= 1u << (t & 31);
    return made = sets_.row(std::move(row));
}

// The canonical set among a few that holds these bytes, so that residuals are shared: what follows JSON's punctuation.
ByteSet Runs::canonical(const ByteSet& bytes) {
    static const auto known = [] {
        std::array<ByteSet, 3> made;
        const char* const members[] = {" \t\n\r\"", " \t\n\r,]}", " \t\n\r\"{[]}:,-0123456789tfn"};
        for (std::size_t i = 0; i < made.size(); ++i)
            for (const char* b = members[i]; *b; ++b) made[i].insert(static_cast<std::uint8_t>(*b));
        return made;
    }();
    for (const ByteSet& set : known)
        if (bytes.within(set)) return set;
    return bytes;
}

// White space, then a text, as a leaf that every grammar shares; over a trie, and what is left behind it, which `after`
// goes on with.
void Runs::take_text(Machine& machine, std::uint32_t trie, bool spaced, std::string_view text, std::span<const Config> after, Mask& mask) {
    ExprPool& pool = machine.pool();
    static const ByteSet blank = [] {
        ByteSet made;
        for (char b : kSpace) made.insert(static_cast<std::uint8_t>(b));
        return made;
    }();
    ExprId e = kEmpty;
    for (std::size_t i = text.size(); i-- > 0;) e = pool.cat(pool.set(ByteSet::range(static_cast<std::uint8_t>(text[i]), static_cast<std::uint8_t>(text[i]))), e);
    if (spaced) e = pool.cat(pool.repeat(pool.set(blank), text.empty() ? 1 : 0, kInfinite), e);
    ByteSet follow;
    for (const Config& c : after) follow |= machine.begins(c);
    follow = canonical(follow);
    if (text.empty())
        for (char b : kSpace) follow.erase(static_cast<std::uint8_t>(b));
    const Key key{trie, leaf_id(follow), e, 0};
    auto known = memo_.find(key);
    if (known == memo_.end()) {
        ++misses_;
        ++time_;
        known = memo_.emplace(key, Known{walk_leaf(pool, trie, e, follow), time_}).first;
        used_ += kRunBytes;
    }
    known->second.time = time_;
    const Run& made = known->second.run;
    if (!sets_[made.tokens].data.empty()) mask.more.push_back(made.tokens);
    if (made.residual)
        for (const Config& c : after) tasks_.push_back({made.residual, c});
}

// Punctuation, and the white space around it: what a configuration of an object or array can go on with by itself. False:
// it stands somewhere else, or white space means more than that here.
bool Runs::take_marks(Machine& machine, const Task& task, Mask& mask) {
    const Config c = task.config;
    const Component& k = machine.component(c.node);
    if (!shortcuts_.marks || (k.kind != NodeKind::object && k.kind != NodeKind::array) || k.unique) return false;
    const Punctuation& marks = k.punctuation;
    const Phase phase = phase_of(c.state);
    const std::uint32_t at = rest_of(c.state);
    std::string_view texts[2];
    switch (phase) {
        case Phase::open: texts[0] = std::string_view(marks.open).substr(at); break;
        case Phase::first: texts[0] = marks.close; break;
        case Phase::colon: texts[0] = std::string_view(marks.colon).substr(at & 0xff); break;
        case Phase::gap:
        case Phase::value: break;
        case Phase::after:
            texts[0] = marks.comma;
            texts[1] = marks.close;
            break;
        case Phase::comma: texts[0] = std::string_view(marks.comma).substr(at); break;
        case Phase::close: texts[0] = std::string_view(marks.close).substr(at); break;
        default: return false;
    }
    const bool spaced = machine.is_spaced(c);
    if (marks.space && !spaced && (phase == Phase::first || phase == Phase::gap || phase == Phase::value || phase == Phase::after || (phase == Phase::colon && !(at & 0xff))))
        return false;  // punctuation that begins with white space
    Configs after, next;
    Outcome outcome;
    if (spaced && phase != Phase::after && phase != Phase::colon) {
        machine.step(c, ' ', after, outcome);
        std::erase(after, c);
        for (const Config& one : after) {
            const ByteSet bytes = machine.begins(one);
            if (outcome.unsure || std::any_of(std::begin(kSpace), std::end(kSpace), [&](char b) { return bytes.contains(static_cast<std::uint8_t>(b)); })) return false;
        }
        take_text(machine, task.trie, true, {}, after, mask);
    }
    for (const std::string_view text : texts) {
        if (text.empty()) continue;
        after.assign(1, c);
        for (char b : text) {
            next.clear();
            for (const Config& one : after) machine.step(one, static_cast<std::uint8_t>(b), next, outcome);
            after.swap(next);
        }
        if (!after.empty()) take_text(machine, task.trie, spaced, text, after, mask);
    }
    return true;
}

// The sets of the configuration's own run, and of what comes of its residual further down the stack; and what is unsure,
// stepped through.
void Runs::find_mask(Machine& machine, const Config& config, Mask& mask) {
    if (config.node == kDone) {
        mask.first = sets_.sparse({});
        return;
    }
    unsure_.clear();
    mask.first = kNoTokens;
    if (machine.forks()) find_forked_mask(machine, config, mask);
    else find_plain_mask(machine, config, mask);
    if (mask.first == kNoTokens) mask.first = sets_.sparse({});
    std::sort(mask.more.begin(), mask.more.end());
    mask.more.erase(std::unique(mask.more.begin(), mask.more.end()), mask.more.end());
    mask.unsure = !unsure_.empty();
    if (mask.unsure) step_through_unsure(machine, config, mask);
}

void Runs::find_plain_mask(Machine& machine, const Config& config, Mask& mask) {
    tasks_.clear();
    auto note = [&](const Run& made, const Config& at) {
        if (made.unsure != kNoTokens) unsure_.insert(unsure_.end(), sets_[made.unsure].data.begin(), sets_[made.unsure].data.end());
        if (made.exits != kNoTokens)
            for (const auto& [label, trie] : exits_[made.exits])
                tasks_.push_back({trie, {at.node, phase_state(Phase::colon, label << 8), at.regs, at.parent}});
        if (made.residual == 0) return;
        below_.clear();
        machine.resume(at.parent, below_);
        for (const Config& c : below_) tasks_.push_back({made.residual, c});
    };
    if (!machine.is_leaf(config) || !shortcuts_.subtrees || !take_smooth(machine, config, mask)) tasks_.push_back({0, config});
    std::unordered_map<std::uint32_t, Gone> gone;
    std::size_t count = 0;
    while (!tasks_.empty()) {
        const Task task = tasks_.back();
        tasks_.pop_back();
        if (task.config.node == kDone || (++count > 64 && gone[task.trie].before(task.config))) continue;
        if (take_marks(machine, task, mask)) continue;
        const Run made = run(machine, task.trie, task.config);
        if (mask.first == kNoTokens) mask.first = made.tokens;  // the only one that may clear some
        else if (!sets_[made.tokens].data.empty()) mask.more.push_back(made.tokens);
        note(made, task.config);
    }
}

void Runs::step_through_unsure(Machine& machine, const Config& config, Mask& mask) {
    std::vector<std::uint32_t> legal;
    std::sort(unsure_.begin(), unsure_.end());
    unsure_.erase(std::unique(unsure_.begin(), unsure_.end()), unsure_.end());
    for (std::uint32_t t : unsure_) {
        below_.assign(1, config);
        for (char b : vocabulary_.token(t)) {
            machine.step_all(below_, static_cast<std::uint8_t>(b), next_);
            below_.swap(next_);
        }
        if (!below_.empty()) legal.push_back(t);
    }
    if (!legal.empty()) mask.last = sets_.sparse(std::move(legal));
}

Run Runs::run(Machine& machine, std::uint32_t trie, const Config& config, bool bare) {
    const bool leaf = machine.is_leaf(config);
    bare &= leaf && trie == 0;
    Key key{trie, machine.component(config.node).id, config.state, leaf ? bare : config.regs};
    if (leaf && shortcuts_.clips) key.state = machine.pool().clipped(config.state, trie ? residuals_[trie - 1]->reach : vocabulary_.longest());
    auto known = memo_.find(key);
    if (known != memo_.end()) {
        hits_.fetch_add(1, std::memory_order_relaxed);
        known->second.time = time_;
        return known->second.run;
    }
    ++misses_;
    ++time_;
    Run made{};
    Config at = config;
    at.state = key.state;
    if (!leaf) {
        if (!walk_keys(machine, trie, at, made)) made = walk(machine, trie, at);
    } else if (trie != 0 || bare || !walk_difference(machine, at, made))
        made = walk_leaf(machine.pool(), trie, at.state, machine.component(config.node).follow);
    memo_.emplace(key, Known{made, time_});
    used_ += kRunBytes;
    return made;
}

// The run of the state that most bytes lead to, and what differs.
bool Runs::walk_difference(Machine& machine, const Config& config, Run& made) {
    if (!shortcuts_.deltas) return false;
    ExprPool& pool = machine.pool();
    const ExprId base = pool.base_of(config.state);
    if (base <= kEmpty || base == config.state) return false;
    const auto difference = pair_walk(pool, trie_, config.state, base, kMaxDifference);
    if (!difference) return false;
    Config there = config;
    there.state = base;
    const Run run_of_base = run(machine, 0, there);
    if (run_of_base.unsure != kNoTokens || sets_[run_of_base.tokens].form == TokenSet::Form::delta) return false;
    made = run_of_base;
    made.tokens = sets_.delta(run_of_base.tokens, difference->cleared, difference->added);
    return true;
}

Run Runs::walk_leaf(ExprPool& pool, std::uint32_t id, ExprId state, const ByteSet& follow) {
    const Grove grove = grove_of(id);
    LeafWalk walked;
    walked.run(pool, grove, state, follow, grove.trie == &trie_ && shortcuts_.subtrees ? &subtrees_ : nullptr, loops_);
    const std::uint32_t residual = residual_of(*grove.trie, walked.pieces);
    return {keep(*grove.trie, walked, !grove.whole()), residual, kNoTokens, kNoTokens};
}

// Names that may still come, up to where each has ended.
bool Runs::walk_keys(Machine& machine, std::uint32_t id, const Config& config, Run& made) {
    if (!shortcuts_.marks || machine.component(config.node).kind != NodeKind::object || phase_of(config.state) != Phase::key) return false;
    const Grove grove = grove_of(id);
    KeyWalk keys;
    if (!keys.run(machine.pool(), grove, rest_of(config.state), [&](std::uint32_t label) { return machine.may_open(config.node, config.regs, label); })) return false;
    LeafWalk walked;
    walked.places = std::move(keys.places);
    made = {keep(*grove.trie, walked, !grove.whole()), 0, kNoTokens, keep_exits(machine, config, *grove.trie, keys.exits)};
    return true;
}

Run Runs::walk(Machine& machine, std::uint32_t id, const Config& config) {
    const Grove grove = grove_of(id);
    const Trie& x = *grove.trie;
    const bool vocabulary = &x == &trie_;
    const ByteSet& follow = machine.component(config.node).follow;
    Configs path{{config.node, config.state, config.regs, kBottom}};  // configurations of all depths, one after the other
    std::vector<std::size_t> begin{0, 1};                             // depth d: [begin[d], begin[d + 1])
    std::vector<ChildLeap> leaps(1);                                  // by depth
    LeafWalk walked;
    std::vector<std::uint32_t> unsure;
    Configs made;
    // One leaf alone, and all below loops in it.
    auto take_all = [&](std::uint32_t node) {
        if (!vocabulary || !shortcuts_.subtrees || made.size() != 1 || !machine.is_leaf(made[0])) return false;
        const Loops* loops = loops_.find(machine.pool(), subtrees_, made[0].state, true);
        return loops && subtrees_.loop(node, *loops, machine.pool().nullable(made[0].state) ? machine.component(made[0].node).follow : ByteSet{});
    };
    auto enter = [&](std::size_t depth, std::uint32_t node) {
        leaps.resize(depth + 1);
        leaps[depth] = {};
        if (!x.wide(node) || !shortcuts_.subtrees || (depth == 0 && !grove.whole())) return;
        ByteSet bytes;
        for (std::size_t c = begin[depth]; c < path.size(); ++c) bytes |= path[c].node == kDone ? follow : machine.begins(path[c]);
        leaps[depth] = ChildLeap(x, node, bytes);
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
        for (std::size_t c = begin[depth - 1]; c < begin[depth]; ++c) machine.step(path[c], x.byte[i], made, outcome);
        if (made.size() > 1) {
            std::sort(made.begin(), made.end());
            made.erase(std::unique(made.begin(), made.end()), made.end());
        }
        if (outcome.unsure) {  // what stands above decides, token by token
            unsure.insert(unsure.end(), x.tokens.begin() + x.first_token[i], x.tokens.begin() + x.first_token[x.end[i]]);
            i = x.end[i];
            continue;
        }
        if (outcome.popped && follow.contains(x.byte[i])) walked.pieces.push_back(i);
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
    const std::uint32_t residual = residual_of(x, walked.pieces);
    std::sort(unsure.begin(), unsure.end());
    unsure.erase(std::unique(unsure.begin(), unsure.end()), unsure.end());
    return {keep(x, walked, !grove.whole()), residual, unsure.empty() ? kNoTokens : sets_.sparse(std::move(unsure)), kNoTokens};
}

// The residuals behind the names that have ended at these nodes.
std::uint32_t Runs::keep_exits(Machine& machine, const Config& config, const Trie& x, std::vector<std::pair<std::uint32_t, std::uint32_t>>& ends) {
    if (ends.empty()) return kNoTokens;
    std::sort(ends.begin(), ends.end());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> made;
    std::vector<std::uint32_t> pieces;
    const ByteSet bytes = machine.begins({config.node, phase_state(Phase::colon), config.regs, kBottom});
    for (std::size_t i = 0; i < ends.size();) {
        const std::uint32_t label = ends[i].first;
        for (pieces.clear(); i < ends.size() && ends[i].first == label; ++i)
            for (std::uint32_t c = ends[i].second + 1; c < x.end[ends[i].second]; c = x.end[c])
                if (bytes.contains(x.byte[c])) pieces.push_back(c);
        if (const std::uint32_t residual = residual_of(x, pieces)) made.emplace_back(label, residual);
    }
    if (made.empty()) return kNoTokens;
    used_ += made.size() * 8 + 48;
    if (free_exits_.empty()) {
        exits_.push_back(std::move(made));
        return static_cast<std::uint32_t>(exits_.size() - 1);
    }
    const std::uint32_t id = free_exits_.back();
    free_exits_.pop_back();
    exits_[id] = std::move(made);
    return id;
}

Grove Runs::grove_of(std::uint32_t id) const {
    if (id == 0) return {&trie_, {{1, trie_.size(), 0}}};
    const Residual& residual = *residuals_[id - 1];
    if (residual.tops.empty()) return {&residual.trie, {{1, residual.trie.size(), 0}}};
    Grove made{&trie_, {}};
    for (std::uint32_t top : residual.tops) made.parts.push_back({top, trie_.end[top], trie_.depth[top] - 1u});
    return made;
}

// What is left where a component has ended: large subtrees of the vocabulary's trie as they stand, others merged.
std::uint32_t Runs::residual_of(const Trie& x, std::vector<std::uint32_t>& pieces) {
    if (pieces.empty()) return 0;
    std::sort(pieces.begin(), pieces.end());
    pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
    std::size_t nodes = 0;
    for (std::uint32_t p : pieces) nodes += x.end[p] - p;
    Residual made;
    if (&x == &trie_ && nodes > std::min<std::size_t>(kMaxMerged, trie_.size() / 8)) made.tops = pieces;
    else made.trie = merged(x, pieces);
    return keep_residual(std::move(made));
}

std::uint32_t Runs::keep_residual(Residual made) {
    if (made.tops.empty())
        for (const std::uint16_t depth : made.trie.depth) made.reach = std::max<std::uint32_t>(made.reach, depth);
    else made.reach = vocabulary_.longest();
    std::uint64_t h = made.tops.size();
    for (std::uint32_t top : made.tops) h = mix(h, top);
    for (std::uint64_t word : made.trie.block()) h = mix(h, word);
    auto [first, last] = residual_ids_.equal_range(h);
    for (; first != last; ++first)
        if (const Residual& known = *residuals_[first->second - 1]; known.tops == made.tops && known.trie == made.trie) return first->second;
    used_ += made.bytes();
    auto id = static_cast<std::uint32_t>(residuals_.size() + 1);
    if (free_residuals_.empty()) residuals_.emplace_back();
    else {
        id = free_residuals_.back();
        free_residuals_.pop_back();
    }
    residuals_[id - 1] = std::make_unique<Residual>(std::move(made));
    residual_ids_.emplace(h, id);
    return id;
}

// The subtrees at `pieces`, as suffixes that begin with the piece's own byte, in one trie.
Trie Runs::merged(const Trie& x, const std::vector<std::uint32_t>& pieces) {
    struct Group {  // nodes that become one, or a node to be closed
        std::vector<std::uint32_t> nodes;
        std::uint32_t depth, close;
    };
    TrieBuilder builder;
    std::vector<Group> todo;
    std::vector<std::uint32_t> tokens;
    auto open_groups = [&](std::vector<std::uint32_t>& nodes, std::uint32_t depth) {  // last byte first: a stack
        std::stable_sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) { return x.byte[a] > x.byte[b]; });
        for (std::size_t i = 0, j; i < nodes.size(); i = j) {
            for (j = i; j < nodes.size() && x.byte[nodes[j]] == x.byte[nodes[i]]; ++j) {}
            todo.push_back({{nodes.begin() + static_cast<std::ptrdiff_t>(i), nodes.begin() + static_cast<std::ptrdiff_t>(j)}, depth, 0});
        }
    };
    std::vector<std::uint32_t> nodes = pieces;
    open_groups(nodes, 1);
    while (!todo.empty()) {
        Group group = std::move(todo.back());
        todo.pop_back();
        if (group.close) {
            builder.close(group.close);
            continue;
        }
        const std::uint32_t made = builder.open(x.byte[group.nodes[0]], group.depth);
        todo.push_back({{}, 0, made});
        tokens.clear();
        nodes.clear();
        for (std::uint32_t n : group.nodes) {
            const auto here = x.tokens_at(n);
            tokens.insert(tokens.end(), here.begin(), here.end());
            for (std::uint32_t c = n + 1; c < x.end[n]; c = x.end[c]) nodes.push_back(c);
        }
        std::sort(tokens.begin(), tokens.end());
        for (std::uint32_t t : tokens) builder.token(t);
        open_groups(nodes, group.depth + 1);
    }
    return builder.build();
}

// Sets the bits of the tokens at these places: one by one, or of all but the others.
void Runs::bits_of(const Trie& x, std::span<const Places> places, std::vector<std::uint32_t>& row) {
    auto put = [&](std::uint32_t begin, std::uint32_t end, bool on) {
        for (std::uint32_t p = begin; p < end; ++p) {
            const std::uint32_t t = x.tokens[p];
            if (on) row[t >> 5] |= 1u << (t & 31);
            else row[t >> 5] &= ~(1u << (t & 31));
        }
    };
    if (&x != &trie_ || count_of(places) < x.tokens.size() / 2) {
        row.assign(words_, 0);
        for (const Places& p : places) put(p.begin, p.end, true);
        return;
    }
    if (all_.empty()) {
        all_.assign(words_, 0);
        for (std::uint32_t t : x.tokens) all_[t >> 5] |= 1u << (t & 31);
    }
    row = all_;
    std::uint32_t at = 0;
    for (const Places& p : places) {
        put(at, p.begin, false);
        at = p.end;
    }
    put(at, static_cast<std::uint32_t>(x.tokens.size()), false);
}

const std::vector<std::uint32_t>& Runs::tokens_up_to(std::uint8_t characters) {
    auto [place, fresh] = up_to_.try_emplace(characters);
    if (fresh) {
        place->second.assign(words_, 0);
        for (std::uint32_t p = 0; p < trie_.tokens.size(); ++p)
            if (subtrees_.characters(p) <= characters) place->second[trie_.tokens[p] >> 5] |= 1u << (trie_.tokens[p] & 31);
    }
    return place->second;
}

std::uint32_t Runs::keep(const Trie& x, LeafWalk& walked, bool disordered) {
    if (disordered) {  // parts of a grove may hold each other
        std::vector<Places> places;
        places.swap(walked.places);
        std::sort(places.begin(), places.end(), [](const Places& a, const Places& b) { return a.begin < b.begin; });
        for (const Places& p : places)
            if (!walked.places.empty() && p.begin <= walked.places.back().end) walked.places.back().end = std::max(walked.places.back().end, p.end);
            else walked.places.push_back(p);
    }
    const std::uint32_t count = count_of(walked.places);
    if (walked.limited.empty() && count <= words_ / 2) {
        std::vector<std::uint32_t> tokens;
        for (const Places& p : walked.places) tokens.insert(tokens.end(), x.tokens.begin() + p.begin, x.tokens.begin() + p.end);
        std::sort(tokens.begin(), tokens.end());
        return sets_.sparse(std::move(tokens));
    }
    std::vector<std::uint32_t> row;
    bits_of(x, walked.places, row);
    for (const LeafWalk::Limited& some : walked.limited) {
        bits_of(x, some.places, scratch_);
        const auto& fit = tokens_up_to(some.characters);
        for (std::size_t i = 0; i < words_; ++i) row[i] |= scratch_[i] & fit[i];
    }
    return sets_.row(std::move(row));
}

}  // namespace guideway
