// Masks of grammars that call themselves. What a trie reaches in the rest of a sequence does not depend on the stack
// below: it is worked out once above the bottom frame, and looked up for every nesting after.
//
// Paths to one trie continue as one: those with the longest texts first, so that all that lead to a trie are known when its
// turn comes.
#include <algorithm>

#include "guideway/base/error.h"
#include "guideway/base/fixed_limit.h"
#include "guideway/mask/mask_engine.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxRoads = 200'000;  // of one mask: what is left of tokens, above frames; some tenths of a second
constexpr std::uint64_t kPartWork = 10;
constexpr std::size_t kMapBytes = 64;  // of a map's entry, besides what it holds
constexpr unsigned kMaxDepth = 6;  // calls that are worked out inside each other; deeper ones are entered in place

void make_set(std::vector<std::uint32_t>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

// The trie is what is left above the frame.
void MaskEngine::leave(Exploration& trail, std::uint32_t trie, std::uint32_t frame) { trail.ended[{~suffix_tries_.reach(trie), trie}].push_back(frame); }

// Names and punctuation of an object or array, whose results all grammars share. Their successors continue in the trail.
bool MaskEngine::take_parts(Machine& machine, Exploration& trail, const Task& task) {
    if (!shortcuts_.marks || machine.is_leaf(task.config)) return false;
    fuel_.spend(kPartWork);
    if (trail.taken[task.trie].before(task.config)) return true;
    struct Turn {  // the trail takes what would continue in `tasks_`
        MaskEngine& runs;
        Turn(MaskEngine& all, Exploration& trail) : runs(all) {
            runs.trail_ = &trail;
            runs.found_.clear();
            runs.spans_.clear();
        }
        ~Turn() {
            runs.trail_ = nullptr;
            runs.found_.clear();
            runs.spans_.clear();
        }
    } const turn(*this, trail);
    if (!take_keys(machine, task) && !take_punctuation(machine, task)) return false;
    trail.sets.insert(trail.sets.end(), found_.begin(), found_.end());
    if (spans_.empty()) return true;
    std::vector<std::uint32_t> tokens;
    for (const Span& span : spans_)
        for (const std::uint32_t t : at_->tokens(span)) tokens.push_back(t);
    make_set(tokens);
    trail.sets.push_back(sets_.sparse(tokens));
    return true;
}

void MaskEngine::drain_worklist(Machine& machine, Exploration& trail) {
    while (!trail.tasks.empty()) {
        const Task task = trail.tasks.back();
        trail.tasks.pop_back();
        const Config& at = task.config;
        if (at.node == kDone) continue;
        if (machine.is_sequence(at)) {
            leave(trail, task.trie, machine.push(at));
            continue;
        }
        if (take_parts(machine, trail, task)) continue;
        const WalkResult made = run(machine, task.trie, at, true);
        if (!sets_[made.tokens].data.empty()) trail.sets.push_back(made.tokens);
        if (made.context_dependent != kNoTokens) trail.context_dependent.insert(trail.context_dependent.end(), sets_[made.context_dependent].data.begin(), sets_[made.context_dependent].data.end());
        if (made.suffix_trie) leave(trail, made.suffix_trie, at.parent);
    }
}

void MaskEngine::follow(Machine& machine, Exploration& trail, unsigned depth) {
    std::vector<std::uint32_t> all, inside;
    Configs together;
    drain_worklist(machine, trail);
    while (!trail.ended.empty()) {
        const auto [key, frames] = std::move(*trail.ended.begin());
        trail.ended.erase(trail.ended.begin());
        const std::uint32_t trie = key.second;
        all.clear();
        for (std::uint32_t frame : frames) machine.members(frame, all);
        make_set(all);
        inside.clear();
        for (std::uint32_t frame : all) {
            if (!trail.visited.insert(std::uint64_t{trie} << 32 | frame).second) continue;
            if (++roads_ > kMaxRoads) throw over_limit(kMaxRoads, "parser stacks in the computation of one mask", "make the grammar less ambiguous");
            const Config at = machine.frame(frame);
            if (at.node == kDone) {
                trail.exits.push_back(trie);
                continue;
            }
            const FrameSummary* known = machine.is_sequence(at) ? call(machine, trie, at, depth) : nullptr;
            if (!known) {
                inside.push_back(frame);
                continue;
            }
            trail.sets.insert(trail.sets.end(), known->sets.begin(), known->sets.end());
            trail.context_dependent.insert(trail.context_dependent.end(), known->context_dependent.begin(), known->context_dependent.end());
            for (std::uint32_t left : known->exits) leave(trail, left, at.parent);
        }
        if (inside.empty()) continue;
        together.clear();
        machine.resume_all(inside, together);
        for (const Config& c : together)
            if (c.node == kDone) trail.exits.push_back(trie);
            else trail.tasks.push_back({trie, c});
        drain_worklist(machine, trail);
    }
}

// Null where it is not to be worked out here: it is being worked out already, or too much is.
const MaskEngine::FrameSummary* MaskEngine::call(Machine& machine, std::uint32_t trie, const Config& frame, unsigned depth) {
    const Key key{trie, machine.component(frame.node).id, frame.state, 0};
    if (const auto known = frame_summaries_.find(key); known != frame_summaries_.end()) {
        known->second.time = time_;
        return known->second.open ? nullptr : &known->second;
    }
    if (depth >= kMaxDepth) return nullptr;
    ++time_;
    FrameSummary& made = frame_summaries_[key];
    try {
        Exploration trail;
        leave(trail, trie, machine.push({frame.node, frame.state, 0, kBottom}));
        follow(machine, trail, depth + 1);
        make_set(trail.sets);
        make_set(trail.exits);
        make_set(trail.context_dependent);
        join_sets(trail.sets);
        made.sets = std::move(trail.sets);
        made.exits = std::move(trail.exits);
        made.context_dependent = std::move(trail.context_dependent);
    } catch (...) {
        frame_summaries_.erase(key);
        throw;
    }
    made.open = false;
    made.time = time_;
    used_ += made.bytes();
    return &made;
}

// Joins many sets, in order, into one: a mask is written set by set. Alternatives of one kind have the same sets, so the
// results are cached.
void MaskEngine::join_sets(std::vector<std::uint32_t>& sets) {
    if (sets.size() < 2) return;
    const auto [known, fresh] = joined_.try_emplace(sets, kNoTokens);
    if (fresh) {
        try {
            known->second = joined(sets);
        } catch (...) {
            joined_.erase(known);
            throw;
        }
        used_ += sizeof *known + kMapBytes + sets.size() * sizeof sets[0];
    }
    sets.assign(1, known->second);
}

std::uint32_t MaskEngine::joined(const std::vector<std::uint32_t>& sets) {
    std::size_t count = 0;
    const bool listed = std::all_of(sets.begin(), sets.end(), [&](std::uint32_t set) {
        count += sets_[set].data.size();
        return sets_[set].form == TokenSet::Form::sparse;
    });
    std::vector<std::uint32_t> made;
    if (listed && count <= words_ / 2) {
        for (std::uint32_t set : sets) made.insert(made.end(), sets_[set].data.begin(), sets_[set].data.end());
        make_set(made);
        return sets_.sparse(made);
    }
    made.assign(words_, 0);
    for (std::uint32_t set : sets) sets_.merge(set, made);
    return sets_.row(made);
}

// Adds to `mask`, `found_` and `context_dependent_` what a configuration takes of a trie, with all that is below it; returns the
// tries that are left where the whole grammar has ended.
std::vector<std::uint32_t> MaskEngine::saturate_all(Machine& machine, std::uint32_t trie, const Config& config, Mask& mask) {
    Exploration trail;
    if (machine.is_sequence(config)) leave(trail, trie, machine.push(config));
    else if (!take_parts(machine, trail, {trie, config})) {
        const WalkResult made = run(machine, trie, config);
        if (trie == 0) mask.first = made.tokens;  // the only one that may clear some
        else trail.sets.push_back(made.tokens);
        if (made.context_dependent != kNoTokens) trail.context_dependent.assign(sets_[made.context_dependent].data.begin(), sets_[made.context_dependent].data.end());
        if (made.suffix_trie) leave(trail, made.suffix_trie, config.parent);
    }
    follow(machine, trail, 0);
    make_set(trail.sets);
    join_sets(trail.sets);
    found_.insert(found_.end(), trail.sets.begin(), trail.sets.end());
    context_dependent_.insert(context_dependent_.end(), trail.context_dependent.begin(), trail.context_dependent.end());
    return std::move(trail.exits);
}

void MaskEngine::find_forked_mask(Machine& machine, const Config& config, Mask& mask) {
    roads_ = 0;
    saturate_all(machine, 0, config, mask);
}

}  // namespace guideway
