// Masks, built from runs: the tokens that the component of a configuration accepts, and the results of the suffix trie in the
// frames below. Parts that occur in several places of a grammar are cached.
//
// The worklist (`tasks_`) has pairs of a trie and a configuration. A task runs its trie through the component of its configuration:
// it adds the accepted tokens to `found_` and `spans_`, and a task for what is left of the trie in each configuration that is
// below where the component ends (`leave`, `add_task`). The first task is the whole vocabulary in the configuration of the mask.
#include <algorithm>

#include "guideway/base/bit_row.h"
#include "guideway/base/sort_unique.h"
#include "guideway/mask/mask_builder.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

namespace {

constexpr std::uint64_t kTaskWork = 10;
constexpr std::size_t kFewTokens = 3;               // of a set whose tokens are kept one by one
constexpr std::size_t kManyTokens = 32;             // kept one by one before repeated ones are looked for
constexpr std::size_t kFewTasks = 64;               // tasks of a mask before repeated tasks are looked for
constexpr std::size_t kMaxSpans = 2048;             // maximum number of tokens of keys that are kept as spans; more become a row
constexpr std::uint32_t kAnyRegister = 0xffffffff;  // in a ResultKey: the result holds for all registers of the object

}  // namespace

void MaskBuilder::build(AutomatonCache& cache, Machine& machine, const Config& config, Mask& made) {
    cache_ = &cache;
    find_mask(machine, config, made);
}

// Adds a token set to what was found; or, of a small set, its tokens: to write a set costs two misses of the processor's cache. An
// exploration has sets only.
void MaskBuilder::add_part(TokenSetId set) {
    const TokenSet& one = sets_[set];
    if (!exploration_ && one.form == TokenSet::Form::sparse && one.data.size() <= kFewTokens)
        tokens_.insert(tokens_.end(), one.data.begin(), one.data.end());
    else if (!one.data.empty()) found_.push_back(set);
}

// Keeps the token sets, tokens and spans that were found from these positions on.
MaskBuilder::Parts MaskBuilder::keep_parts(const Found& from) {
    Parts made{static_cast<std::uint32_t>(cache_->parts.size()), 0, 0};
    if (found_.size() - from.sets > 1) sort_unique(found_, from.sets);
    if (tokens_.size() - from.tokens > kManyTokens) sort_unique(tokens_, from.tokens);
    ArenaVector<std::uint32_t>& parts = cache_->parts;
    for (const TokenSetId set : std::span(found_).subspan(from.sets)) parts.push_back(raw(set));
    for (const std::uint32_t t : std::span(tokens_).subspan(from.tokens)) parts.push_back(t | AutomatonCache::kOneToken);
    made.sets = static_cast<std::uint32_t>(parts.size()) - made.at;
    made.spans = static_cast<std::uint32_t>(spans_.size() - from.spans);
    for (std::size_t i = from.spans; i < spans_.size(); ++i) parts.insert(parts.end(), {spans_[i].begin, spans_[i].end});
    return made;
}

// Finds the token sets of the configuration's run and of its suffix trie in the frames below. Tokens that depend on the context
// are stepped one by one.
void MaskBuilder::find_mask(Machine& machine, const Config& config, Mask& mask) {
    if (config.node == kDone) {
        mask.run = sets_.sparse({});
        return;
    }
    tasks_.clear();
    context_dependent_.clear();
    found_.clear();
    tokens_.clear();
    spans_.clear();
    end_tries_ = nullptr;  // it is still set if a limit ended the computation before
    mask.run = kNoTokens;
    if (machine.shares_stacks()) find_mask_of_shared_stacks(machine, config, mask);
    else {
        if (!visited_configs_.empty()) visited_configs_.clear();
        recording_count_ = task_count_ = 0;
        tasks_.push_back({kVocabularyTrie, config});
        drain_worklist(machine, mask);
    }
    if (mask.run == kNoTokens) mask.run = sets_.sparse({});
    mask.parts = keep_parts({});
    mask.context_dependent = !context_dependent_.empty();
    if (mask.context_dependent) step_through_context_dependent(machine, config, mask);
}

void MaskBuilder::step_through_context_dependent(Machine& machine, const Config& config, Mask& mask) {
    std::vector<std::uint32_t> legal;
    sort_unique(context_dependent_);
    for (std::uint32_t t : context_dependent_) {
        below_.assign(1, config);
        for (char b : vocabulary_.token(t)) {
            machine.step_all(below_, static_cast<std::uint8_t>(b), next_);
            below_.swap(next_);
        }
        if (!below_.empty()) legal.push_back(t);
    }
    if (!legal.empty()) mask.verified = sets_.sparse(legal);
}

void MaskBuilder::drain_worklist(Machine& machine, Mask& mask) {
    while (true) {
        while (recording_count_ && tasks_.size() == recordings_[recording_count_ - 1].tasks) end_recording(machine);
        if (tasks_.empty()) return;
        const Task task = tasks_.back();
        tasks_.pop_back();
        fuel_.spend(kTaskWork);
        if (task.config.node == kDone) {
            if (end_tries_) end_tries_->push_back(task.trie);
            continue;
        }
        if (++task_count_ > kFewTasks && visited_configs_[task.trie].repeats(task.config)) {
            // An earlier task has done the same. The summaries that are being recorded lack its results.
            for (std::size_t i = 0; i < recording_count_; ++i) recordings_[i].reusable = false;
            continue;
        }
        run_task(machine, task, mask);
    }
}

void MaskBuilder::run_task(Machine& machine, const Task& task, Mask& mask) {
    if (!machine.is_leaf(task.config) && (apply_summary(machine, task) || run_keys(machine, task) || run_punctuation(machine, task)))
        return;
    const WalkResult made = results_.run(machine, task.trie, task.config);
    // The result of an object depends on its register. A summary for any register must not contain a result of the same object.
    for (std::size_t i = 0; i < recording_count_; ++i)
        if (recordings_[i].any_register && recordings_[i].config.node == task.config.node &&
            recordings_[i].config.parent == task.config.parent)
            recordings_[i].reusable = false;
    if (task.trie == kVocabularyTrie) mask.run = made.tokens;  // only this set may be a delta
    else add_part(made.tokens);
    if (made.context_dependent != kNoTokens) {
        context_dependent_.insert(context_dependent_.end(), sets_[made.context_dependent].data.begin(),
                                  sets_[made.context_dependent].data.end());
        for (std::size_t i = 0; i < recording_count_; ++i) recordings_[i].reusable = false;
    }
    if (made.suffix_trie != kNoTrie) leave(machine, made.suffix_trie, task.config);
}

// Continues with a suffix trie below a component that has ended, or records it as an exit of the innermost recording.
void MaskBuilder::leave(Machine& machine, TrieId suffix_trie, const Config& config) {
    if (exploration_) return leave(*exploration_, suffix_trie, config.parent);
    if (recording_count_ && recordings_[recording_count_ - 1].config.parent == config.parent) {
        recordings_[recording_count_ - 1].exits.push_back(suffix_trie);
        return;
    }
    below_.clear();
    machine.resume(config.parent, below_);
    for (const Config& c : below_) add_task(suffix_trie, c);
}

// Adds a task to the worklist, or records the trie as a continuation of the innermost recording.
void MaskBuilder::add_task(TrieId suffix_trie, const Config& c) {
    if (exploration_) return exploration_->tasks.push_back({suffix_trie, c});
    if (recording_count_) {
        SummaryRecording& last = recordings_[recording_count_ - 1];
        if (last.any_register && c.node == last.config.node && c.parent == last.config.parent && phase_of(c.state) == Phase::after) {
            last.continuations.push_back(suffix_trie);
            return;
        }
    }
    tasks_.push_back({suffix_trie, c});
}

// Uses the cached summary of a component over a suffix trie and returns true, or begins to record one and returns false. It
// is recorded until the worklist has `tasks` tasks again: all that are added until then belong to it. From the colon of an
// unbounded object on, it ends at the next `Phase::after` of the same object and so holds for all registers
// (`any_register`): the tries that are left after the value are its `continuations`, and each use continues with them from
// its own register. `reusable` becomes false if a task was skipped, or depended on the register or on text that was read; then the
// summary is not kept.
bool MaskBuilder::apply_summary(Machine& machine, const Task& task) {
    const Config& c = task.config;
    const AnalysedNode& k = machine.component(c.node);
    const Phase phase = phase_of(c.state);
    if (!tuning_.summaries || task.trie == kVocabularyTrie || k.unique || (k.kind != NodeKind::object && k.kind != NodeKind::array) ||
        (phase != Phase::after && phase != Phase::colon))
        return false;
    const bool any_register = phase == Phase::colon && !k.bounded;
    const ResultKey key{task.trie, k.id, raw(c.state), any_register ? kAnyRegister : raw(c.regs)};
    const ComponentSummary* known = cache_->summaries.find(key);
    if (known) {
        results_.counters.hits.fetch_add(1, std::memory_order_relaxed);
        std::uint32_t part = known->parts.at;
        for (const std::uint32_t end = part + known->parts.sets; part != end; ++part) {
            const std::uint32_t one = cache_->parts[part];
            if (one & AutomatonCache::kOneToken) tokens_.push_back(one & ~AutomatonCache::kOneToken);
            else found_.push_back(TokenSetId{one});
        }
        for (std::uint32_t i = 0; i < known->parts.spans; ++i, part += 2) spans_.push_back({cache_->parts[part], cache_->parts[part + 1]});
        for (std::uint32_t i = 0; i < known->exits; ++i) leave(machine, TrieId{cache_->parts[part++]}, c);
        for (std::uint32_t i = 0; i < known->continuations; ++i)
            add_task(TrieId{cache_->parts[part++]}, machine.after_value(c, label_of_entry(c.state)));
        return true;
    }
    if (recordings_.size() == recording_count_) recordings_.emplace_back();
    SummaryRecording& made = recordings_[recording_count_++];
    made.key = key;
    made.config = c;
    made.tasks = tasks_.size();
    made.found = {found_.size(), tokens_.size(), spans_.size()};
    made.any_register = any_register;
    made.reusable = true;
    made.exits.clear();
    made.continuations.clear();
    return false;
}

void MaskBuilder::end_recording(Machine& machine) {
    SummaryRecording& last = recordings_[--recording_count_];
    if (last.reusable) {
        ComponentSummary made;
        made.parts = keep_parts(last.found);
        made.exits = static_cast<std::uint32_t>(last.exits.size());
        made.continuations = static_cast<std::uint32_t>(last.continuations.size());
        for (const auto* some : {&last.exits, &last.continuations})
            for (const TrieId trie : *some) cache_->parts.push_back(raw(trie));
        cache_->summaries.get(last.key) = made;
    }
    for (const TrieId suffix_trie : last.exits) leave(machine, suffix_trie, last.config);
    if (!last.continuations.empty()) {
        const Config after = machine.after_value(last.config, label_of_entry(last.config.state));
        for (const TrieId suffix_trie : last.continuations) add_task(suffix_trie, after);
    }
}

// Accepts the tokens that can continue as keys that are allowed now (`ObjectRules::AllowedKeys`), and adds a task for the suffix
// trie after each of these keys, at the colon. The index of all keys is cached (`key_index_of`); only the selection depends on
// the register. Returns false where the configuration is not in a key, or its keys have no index.
bool MaskBuilder::run_keys(Machine& machine, const Task& task) {
    const Config& c = task.config;
    if (!tuning_.key_index || machine.component(c.node).kind != NodeKind::object || phase_of(c.state) != Phase::key) return false;
    const KeyIndex all = key_index_of(machine, task);
    if (!all.exists) return false;
    fuel_.spend(all.exits.end - all.exits.begin + all.ranges.end - all.ranges.begin);
    std::vector<std::uint32_t>& before = allowed_;  // by position of a key: number of allowed keys before it
    before.assign(1, 0);
    const ObjectRules::AllowedKeys allowed_keys(machine.object_rules(), c.node, c.regs);
    for (std::uint32_t n = all.exits.begin; n < all.exits.end; ++n) {
        const AutomatonCache::KeyExit key = cache_->key_exits[n];
        const bool is_allowed = allowed_keys(key.label);
        before.push_back(before.back() + is_allowed);
        if (is_allowed && key.suffix_trie != kNoTrie)
            add_task(key.suffix_trie, {c.node, entry_state(Phase::colon, key.label), c.regs, c.parent});
    }
    const std::size_t others = spans_.size();
    std::size_t count = 0;
    for (std::uint32_t n = all.ranges.begin; n < all.ranges.end; ++n) {
        const AutomatonCache::KeyRange range = cache_->key_ranges[n];
        if (before[range.first] == before[range.last]) continue;
        count += range.end - range.begin;
        if (spans_.size() > others && spans_.back().end == range.begin) spans_.back().end = range.end;
        else spans_.push_back({range.begin, range.end});
    }
    if (count <= kMaxSpans) return true;
    row_.assign(words_, 0);
    for (std::size_t i = others; i < spans_.size(); ++i) set_bits(row_, cache_->tokens(spans_[i]));
    spans_.resize(others);
    found_.push_back(sets_.row(row_));
    return true;
}

MaskBuilder::KeyIndex MaskBuilder::key_index_of(Machine& machine, const Task& task) {
    const Config& c = task.config;
    // The index depends on the object only by its colon, so objects with equal keys share it.
    const Punctuation& punctuation = *machine.component(c.node).punctuation;
    const std::uint32_t colon_begins = byte_at(punctuation.colon, 0) | (punctuation.space ? 0x100u : 0u);
    const ResultKey key{task.trie, ComponentId{colon_begins}, raw(c.state), 0};
    if (const KeyIndex* known = cache_->key_indexes.find(key)) {
        results_.counters.hits.fetch_add(1, std::memory_order_relaxed);
        return *known;
    }
    ++results_.counters.misses;
    const TrieForest& forest = suffix_tries_.forest(task.trie);
    const TokenTrie& x = *forest.trie;
    KeyWalk& walked = key_walk_;
    if (!walked.run(machine.pool(), forest, keys_of(c.state))) return cache_->key_indexes.add(key, {{}, {}, false});
    fuel_.spend(kTaskWork * (walked.labels.size() + walked.places.size()));
    const auto size = [](const auto& all) { return static_cast<std::uint32_t>(all.size()); };
    auto& exits = cache_->key_exits;
    auto& ranges = cache_->key_ranges;
    auto& listed = cache_->key_tokens;
    KeyIndex made{{size(exits), 0}, {size(ranges), 0}, true};
    for (const std::uint32_t label : walked.labels) exits.push_back({label, kNoTrie});
    for (const KeyWalk::Place& place : walked.places) {
        const auto here = x.tokens_at(place.node);
        const std::uint32_t begin = size(listed);
        listed.insert(listed.end(), here.begin(), here.end());
        if (size(ranges) > made.ranges.begin && ranges.back().first == place.first && ranges.back().last == place.last)
            ranges.back().end = size(listed);
        else ranges.push_back({place.first, place.last, begin, size(listed)});
    }
    const ByteSet colon = machine.begins({c.node, phase_state(Phase::colon), c.regs, kBottom});
    std::vector<std::uint32_t>& pieces = key_pieces_;
    std::sort(walked.exits.begin(), walked.exits.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    for (std::size_t at = 0; at < walked.exits.size();) {
        const std::uint32_t number = walked.exits[at].key;
        for (pieces.clear(); at < walked.exits.size() && walked.exits[at].key == number; ++at)
            for (std::uint32_t n = walked.exits[at].node, child = n + 1; child < x.end[n]; child = x.end[child])
                if (colon.contains(x.byte[child])) pieces.push_back(child);
        exits[made.exits.begin + number].suffix_trie = suffix_tries_.after_exits(x, pieces);
    }
    made.exits.end = size(exits);
    made.ranges.end = size(ranges);
    return cache_->key_indexes.add(key, made);
}

// Accepts the tokens of a trie that end in `text`, perhaps after white space; adds tasks for what is left in the configurations
// after the text (`after_`), of which `begins` is the union of first bytes.
void MaskBuilder::run_text(Machine& machine, TrieId trie, bool spaced, std::string_view text, const ByteSet& begins) {
    ByteSet follow = PunctuationLeaves::canonical(begins);
    if (text.empty()) follow -= kSpace;
    const WalkResult made = punctuation_.result(machine.pool(), trie, text, spaced, follow);
    add_part(made.tokens);
    if (made.suffix_trie != kNoTrie)
        for (const Config& c : after_) add_task(made.suffix_trie, c);
}

// The same with the text that ends the component.
void MaskBuilder::run_closing(Machine& machine, const Task& task, bool spaced, std::string_view text) {
    const ByteSet follow = PunctuationLeaves::canonical(machine.component(task.config.node).follow);
    const WalkResult made = punctuation_.result(machine.pool(), task.trie, text, spaced, follow);
    add_part(made.tokens);
    if (made.suffix_trie != kNoTrie) leave(machine, made.suffix_trie, task.config);
}

// Runs a trie through punctuation and the white space around it, where an object or array can continue with nothing else.
// Returns false at other places, or if white space has another meaning there.
bool MaskBuilder::run_punctuation(Machine& machine, const Task& task) {
    const Config c = task.config;
    const AnalysedNode& k = machine.component(c.node);
    if (!tuning_.punctuation || (k.kind != NodeKind::object && k.kind != NodeKind::array) || k.unique) return false;
    const Punctuation& punctuation = *k.punctuation;
    const Phase phase = phase_of(c.state);
    const std::uint32_t at = rest_of(c.state);
    std::string_view text, closing;
    switch (phase) {
        case Phase::open: text = std::string_view(punctuation.open).substr(at); break;
        case Phase::first: closing = punctuation.close; break;
        case Phase::colon: text = std::string_view(punctuation.colon).substr(colon_bytes_read(c.state)); break;
        case Phase::gap:
        case Phase::value: break;
        case Phase::after:
            text = punctuation.comma;
            closing = punctuation.close;
            break;
        case Phase::comma: text = std::string_view(punctuation.comma).substr(at); break;
        case Phase::close: closing = std::string_view(punctuation.close).substr(at); break;
        default: return false;
    }
    const bool spaced = is_spaced(k, c.state);
    if (punctuation.space && !spaced &&
        (phase == Phase::first || phase == Phase::gap || phase == Phase::value || phase == Phase::after ||
         (phase == Phase::colon && colon_bytes_read(c.state) == 0)))
        return false;  // punctuation that begins with white space
    const auto begins = [&] {
        ByteSet made;
        for (const Config& one : after_) made |= machine.begins(one);
        return made;
    };
    if (spaced && phase != Phase::after && phase != Phase::colon) {
        after_.clear();
        machine.after_space(c, after_);
        const ByteSet values = begins();
        if (values.meets(kSpace)) return false;
        run_text(machine, task.trie, true, {}, values);
    }
    if (!text.empty() && step_along(machine, c, text)) run_text(machine, task.trie, spaced, text, begins());
    if (!closing.empty() && (phase == Phase::close || machine.may_close(c))) run_closing(machine, task, spaced, closing);
    return true;
}

// Steps a configuration through some bytes; the result is in `after_`. Returns whether it is nonempty.
bool MaskBuilder::step_along(Machine& machine, const Config& c, std::string_view bytes) {
    Outcome outcome;
    after_.assign(1, c);
    for (const char b : bytes) {
        next_.clear();
        for (const Config& one : after_) machine.step(one, static_cast<std::uint8_t>(b), next_, outcome);
        after_.swap(next_);
    }
    return !after_.empty();
}

}  // namespace guideway
