// Masks of grammars that share stacks (`Machine::shares_stacks`). The result of a trie in the rest of a sequence does
// not depend on the stack below. It is computed once, directly above the bottom frame, and later nestings look it up.
//
// All paths to a suffix trie are followed together. The trie with the longest text is next (`Exploration::frames_to_resume`): a trie leads
// only to shorter ones, or, where a component accepts the empty text, to itself.
#include <algorithm>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/base/sort_unique.h"
#include "guideway/mask/mask_builder.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxPaths = 200'000;  // pairs of a suffix trie and a frame in one mask; they take some tenths of a second
constexpr std::uint64_t kPartWork = 10;
constexpr std::size_t kMapBytes = 64;  // of a map's entry, without key and value
constexpr unsigned kMaxDepth = 6;      // nested computations of `call`; deeper ones are followed without a summary

}  // namespace

void FrameSummaries::append_last_uses(std::vector<std::uint32_t>& times) const {
    for (const auto& [key, made] : known) times.push_back(made.last_use);
}

// Removes summaries that were not used since; marks the sets and suffix tries of the others.
void FrameSummaries::drop_before(std::uint32_t time, std::vector<bool>& sets, std::vector<bool>& tries) {
    joined_.clear();
    std::erase_if(known, [&](const auto& entry) { return entry.second.last_use < time; });
    for (const auto& [key, made] : known) {
        for (const TrieId trie : made.exits) tries[raw(trie)] = true;
        for (const TokenSetId set : made.sets) mark_used(set, sets);
    }
    std::erase_if(known, [&](const auto& entry) { return !tries[raw(entry.first.trie)]; });
    for (const auto& [key, made] : known) results_.counters.bytes += made.bytes();
}

void FrameSummaries::clear() {
    known.clear();
    joined_.clear();
}

// Joins sorted sets into one: a mask is written set by set. Equal lists of sets are frequent, so the results are cached.
void FrameSummaries::join(std::vector<TokenSetId>& sets) {
    if (sets.size() < 2) return;
    const auto [made, fresh] = joined_.try_emplace(sets, kNoTokens);
    if (fresh) {
        try {
            made->second = joined(sets);
        } catch (...) {
            joined_.erase(made);
            throw;
        }
        results_.counters.bytes += sizeof *made + kMapBytes + sets.size() * sizeof sets[0];
    }
    sets.assign(1, made->second);
}

TokenSetId FrameSummaries::joined(const std::vector<TokenSetId>& sets) {
    std::size_t count = 0;
    const bool listed = std::all_of(sets.begin(), sets.end(), [&](TokenSetId set) {
        count += results_.sets()[set].data.size();
        return results_.sets()[set].form == TokenSet::Form::sparse;
    });
    std::vector<std::uint32_t> made;
    if (listed && count <= results_.words() / 2) {
        for (const TokenSetId set : sets) made.insert(made.end(), results_.sets()[set].data.begin(), results_.sets()[set].data.end());
        sort_unique(made);
        return results_.sets().sparse(made);
    }
    made.assign(results_.words(), 0);
    for (const TokenSetId set : sets) results_.sets().merge(set, made);
    return results_.sets().row(made);
}

// Notes that a suffix trie is left above a frame.
void MaskBuilder::leave(Exploration& exploration, TrieId trie, FrameId frame) {
    exploration.frames_to_resume[{~suffix_tries_.reach(trie), trie}].push_back(frame);
}

// Runs a trie through the keys or the punctuation of an object or array; what follows is added to the exploration. Returns false
// at other places.
bool MaskBuilder::run_parts(Machine& machine, Exploration& exploration, const Task& task) {
    if (machine.is_leaf(task.config) || !(tuning_.key_index || tuning_.punctuation)) return false;
    fuel_.spend(kPartWork);
    if (exploration.visited_configs[task.trie].repeats(task.config)) return true;
    struct Redirect {  // tasks are added to the exploration, not to `tasks_`
        MaskBuilder& builder;
        Redirect(MaskBuilder& all, Exploration& exploration) : builder(all) {
            builder.exploration_ = &exploration;
            builder.found_.clear();
            builder.spans_.clear();
        }
        ~Redirect() {
            builder.exploration_ = nullptr;
            builder.found_.clear();
            builder.spans_.clear();
        }
    } const redirect(*this, exploration);
    if (!run_keys(machine, task) && !run_punctuation(machine, task)) return false;
    exploration.sets.insert(exploration.sets.end(), found_.begin(), found_.end());
    if (spans_.empty()) return true;
    std::vector<std::uint32_t> tokens;
    for (const Span& span : spans_)
        for (const std::uint32_t t : cache_->tokens(span)) tokens.push_back(t);
    sort_unique(tokens);
    exploration.sets.push_back(sets_.sparse(tokens));
    return true;
}

void MaskBuilder::drain_worklist(Machine& machine, Exploration& exploration) {
    while (!exploration.tasks.empty()) {
        const Task task = exploration.tasks.back();
        exploration.tasks.pop_back();
        const Config& at = task.config;
        if (at.node == kDone) continue;
        if (machine.is_sequence(at)) {
            leave(exploration, task.trie, machine.push(at));
            continue;
        }
        if (run_parts(machine, exploration, task)) continue;
        const WalkResult made = results_.run(machine, task.trie, at, true);
        if (!sets_[made.tokens].data.empty()) exploration.sets.push_back(made.tokens);
        if (made.context_dependent != kNoTokens)
            exploration.context_dependent.insert(exploration.context_dependent.end(), sets_[made.context_dependent].data.begin(),
                                                 sets_[made.context_dependent].data.end());
        if (made.suffix_trie != kNoTrie) leave(exploration, made.suffix_trie, at.parent);
    }
}

// Follows the suffix tries of an exploration down the stacks: through summaries of the rests of sequences where they can be
// computed, else by tasks.
void MaskBuilder::follow(Machine& machine, Exploration& exploration, unsigned depth) {
    std::vector<FrameId> all, inside;
    Configs together;
    drain_worklist(machine, exploration);
    while (!exploration.frames_to_resume.empty()) {
        const auto [key, frames] = std::move(*exploration.frames_to_resume.begin());
        exploration.frames_to_resume.erase(exploration.frames_to_resume.begin());
        const TrieId trie = key.second;
        all.clear();
        for (const FrameId frame : frames) machine.members(frame, all);
        sort_unique(all);
        inside.clear();
        for (const FrameId frame : all) {
            if (!exploration.visited_frames.insert(std::uint64_t{raw(trie)} << 32 | raw(frame)).second) continue;
            if (++paths_ > kMaxPaths)
                throw over_limit(kMaxPaths, "parser stacks in the computation of one mask", "make the grammar less ambiguous");
            const Config at = machine.frame(frame);
            if (at.node == kDone) {
                exploration.exits.push_back(trie);
                continue;
            }
            const FrameSummary* known = machine.is_sequence(at) ? call(machine, trie, at, depth) : nullptr;
            if (!known) {
                inside.push_back(frame);
                continue;
            }
            exploration.sets.insert(exploration.sets.end(), known->sets.begin(), known->sets.end());
            exploration.context_dependent.insert(exploration.context_dependent.end(), known->context_dependent.begin(),
                                                 known->context_dependent.end());
            for (const TrieId left : known->exits) leave(exploration, left, at.parent);
        }
        if (inside.empty()) continue;
        together.clear();
        machine.resume_all(inside, together);
        for (const Config& c : together)
            if (c.node == kDone) exploration.exits.push_back(trie);
            else exploration.tasks.push_back({trie, c});
        drain_worklist(machine, exploration);
    }
}

const FrameSummary* MaskBuilder::call(Machine& machine, TrieId trie, const Config& frame, unsigned depth) {
    const ResultKey key{trie, machine.component(frame.node).id, raw(frame.state), 0};
    if (const auto known = summaries_.known.find(key); known != summaries_.known.end()) {
        known->second.last_use = results_.counters.result_clock;
        return known->second.incomplete ? nullptr : &known->second;
    }
    if (depth >= kMaxDepth) return nullptr;
    ++results_.counters.result_clock;
    FrameSummary& made = summaries_.known[key];
    try {
        Exploration exploration;
        leave(exploration, trie, machine.push({frame.node, frame.state, {}, kBottom}));
        follow(machine, exploration, depth + 1);
        sort_unique(exploration.sets);
        sort_unique(exploration.exits);
        sort_unique(exploration.context_dependent);
        summaries_.join(exploration.sets);
        made.sets = std::move(exploration.sets);
        made.exits = std::move(exploration.exits);
        made.context_dependent = std::move(exploration.context_dependent);
    } catch (...) {
        summaries_.known.erase(key);
        throw;
    }
    made.incomplete = false;
    made.last_use = results_.counters.result_clock;
    results_.counters.bytes += made.bytes();
    return &made;
}

// Adds to `mask`, `found_` and `context_dependent_` the tokens of a trie that a configuration with its stacks accepts; returns the
// tries that are left where the whole grammar has ended.
std::vector<TrieId> MaskBuilder::saturate_all(Machine& machine, TrieId trie, const Config& config, Mask& mask) {
    Exploration exploration;
    if (machine.is_sequence(config)) leave(exploration, trie, machine.push(config));
    else if (!run_parts(machine, exploration, {trie, config})) {
        const WalkResult made = results_.run(machine, trie, config);
        if (trie == kVocabularyTrie) mask.run = made.tokens;  // only this set may be a delta
        else exploration.sets.push_back(made.tokens);
        if (made.context_dependent != kNoTokens)
            exploration.context_dependent.assign(sets_[made.context_dependent].data.begin(), sets_[made.context_dependent].data.end());
        if (made.suffix_trie != kNoTrie) leave(exploration, made.suffix_trie, config.parent);
    }
    follow(machine, exploration, 0);
    sort_unique(exploration.sets);
    summaries_.join(exploration.sets);
    found_.insert(found_.end(), exploration.sets.begin(), exploration.sets.end());
    context_dependent_.insert(context_dependent_.end(), exploration.context_dependent.begin(), exploration.context_dependent.end());
    return std::move(exploration.exits);
}

void MaskBuilder::find_mask_of_shared_stacks(Machine& machine, const Config& config, Mask& mask) {
    paths_ = 0;
    saturate_all(machine, kVocabularyTrie, config, mask);
}

}  // namespace guideway
