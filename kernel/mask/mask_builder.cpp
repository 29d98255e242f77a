// Masks, put together from runs: what a configuration's own component takes, and what comes of the suffix trie in the frames
// below. Parts that come again, in other places of a grammar, are cached on the way.
#include <algorithm>

#include "guideway/mask/mask_engine.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

namespace {

constexpr char kSpace[] = {' ', '\t', '\n', '\r'};
constexpr std::uint64_t kTaskWork = 10;
constexpr std::size_t kMaxSpans = 2048;       // tokens of names that are written one by one
constexpr std::uint32_t kAnyEntries = 0xffffffff;  // of a key: whichever entries came before

const ByteSet kBlank = [] {
    ByteSet made;
    for (char b : kSpace) made.insert(static_cast<std::uint8_t>(b));
    return made;
}();

}  // namespace

// What a leaf has read does not matter, unless something depended on the context.
MaskEngine::Mask* MaskEngine::find(const Machine& machine, const AutomatonCache& learned, const Config& c) {
    if (!machine.is_leaf(c)) return learned.masks.find(c);
    Mask* known = learned.masks.find({c.node, c.state, 0, c.parent});
    if (known && known->context_dependent && c.regs != 0) known = learned.masks.find(c);
    return known && known->first != kNoTokens ? known : nullptr;
}

std::optional<bool> MaskEngine::fill_known(std::uint32_t automaton, const StateSet& state_set, std::span<std::uint32_t> row) const {
    const AutomatonCache& from = *learned_[automaton];
    const auto masks = from.of(state_set);
    if (masks.empty()) return std::nullopt;
    from.touch(turn_);
    bool accepting = false;
    for (const Mask* one : masks) accepting |= one->accepting;
    write(from, masks, row);
    hits_.fetch_add(1, std::memory_order_relaxed);
    return accepting;
}

std::optional<bool> MaskEngine::accepting_known(std::uint32_t automaton, const StateSet& state_set) const {
    const auto masks = learned_[automaton]->of(state_set);
    if (masks.empty()) return std::nullopt;
    return std::any_of(masks.begin(), masks.end(), [](const Mask* one) { return one->accepting; });
}

bool MaskEngine::fill(Machine& machine, std::uint32_t automaton, const StateSet& state_set, std::span<std::uint32_t> row) {
    if (const auto known = fill_known(automaton, state_set, row)) return *known;
    turn_to(automaton);
    bool accepting = false;
    filled_.clear();
    for (const Config& c : state_set.configs()) {
        filled_.push_back(&mask(machine, c));
        accepting |= filled_.back()->accepting;
    }
    put_first(filled_);
    write(*at_, filled_, row);
    at_->keep(state_set, filled_);
    count_learned(*at_);
    return accepting;
}

// One of whole rows goes first, since it is copied then, not joined.
void MaskEngine::put_first(std::span<Mask*> masks) const {
    if (masks.empty()) return;
    const auto listed = [&](const Mask* one) { return sets_[one->first].form == TokenSet::Form::sparse; };
    if (listed(masks.front()))
        if (const auto whole = std::find_if_not(masks.begin(), masks.end(), listed); whole != masks.end()) std::swap(masks.front(), *whole);
}

void MaskEngine::write(const AutomatonCache& from, std::span<Mask* const> masks, std::span<std::uint32_t> row) const {
    if (masks.empty()) return std::fill(row.begin(), row.end(), 0);
    write(from, *masks.front(), kNoTokens, row);
    for (const Mask* one : masks.subspan(1)) write(from, *one, masks.front()->first, row);
}

// Adds a mask to a row. Its `cleared` tokens are removed only if no earlier mask set them. `before`: the base set that
// the row was initialised from (kNoTokens: undefined content); with the same base, only the cleared tokens are restored.
void MaskEngine::write(const AutomatonCache& from, const Mask& mask, std::uint32_t before, std::span<std::uint32_t> row) const {
    thread_local std::vector<std::uint32_t> kept;
    const bool blank = before == kNoTokens, beside = !blank && sets_[mask.first].form == TokenSet::Form::delta;
    if (beside) {
        kept.clear();
        for (const std::uint32_t t : sets_[mask.first].taken())
            if (row[t >> 5] >> (t & 31) & 1) kept.push_back(t);
    }
    if (blank) sets_.write(mask.first, row);
    else if (sets_.delta_base(before) == sets_.delta_base(mask.first)) sets_.restore(before, row);
    else sets_.merge(mask.first, row);
    std::uint32_t part = mask.more.at;
    for (const std::uint32_t end = part + mask.more.sets; part != end; ++part) sets_.merge(from.parts[part], row);
    for (const std::uint32_t end = part + 2 * mask.more.spans; part != end; part += 2)
        for (const std::uint32_t t : from.tokens({from.parts[part], from.parts[part + 1]})) row[t >> 5] |= 1u << (t & 31);
    sets_.change(mask.first, row);
    if (beside)
        for (const std::uint32_t t : kept) row[t >> 5] |= 1u << (t & 31);
    if (mask.last != kNoTokens) sets_.merge(mask.last, row);
}

MaskEngine::Mask& MaskEngine::mask(Machine& machine, const Config& config) {
    if (Mask* known = find(machine, *at_, config)) {
        hits_.fetch_add(1, std::memory_order_relaxed);
        return *known;
    }
    Mask made;
    find_mask(machine, config, made);
    made.accepting = machine.accepting(config);
    Config place = config;
    if (machine.is_leaf(config) && config.regs != 0) {
        const Config any{config.node, config.state, 0, config.parent};
        Mask* sign = at_->masks.find(any);
        if (!made.context_dependent && (!sign || !sign->context_dependent)) place = any;
        if (made.context_dependent && !sign) {
            sign = &at_->masks.add(any, {});
            sign->first = kNoTokens;
        }
        if (made.context_dependent) sign->context_dependent = true;  // one must look again
    }
    Mask& kept = at_->masks.get(place);
    made.context_dependent |= kept.context_dependent;
    return kept = made;
}

// The sets and spans found from these on.
MaskEngine::Parts MaskEngine::keep_parts(std::size_t sets, std::size_t spans) {
    Parts made{static_cast<std::uint32_t>(at_->parts.size()), 0, 0};
    auto first = found_.begin() + static_cast<std::ptrdiff_t>(sets);
    if (found_.size() - sets > 1) {
        std::sort(first, found_.end());
        found_.erase(std::unique(first, found_.end()), found_.end());
        first = found_.begin() + static_cast<std::ptrdiff_t>(sets);
    }
    made.sets = static_cast<std::uint32_t>(found_.end() - first);
    ArenaVector<std::uint32_t>& parts = at_->parts;
    parts.insert(parts.end(), first, found_.end());
    made.spans = static_cast<std::uint32_t>(spans_.size() - spans);
    for (std::size_t i = spans; i < spans_.size(); ++i) parts.insert(parts.end(), {spans_[i].begin, spans_[i].end});
    return made;
}

// The sets of the configuration's own run, and of what comes of its suffix trie further down the stack; and what depends on the context,
// stepped through.
void MaskEngine::find_mask(Machine& machine, const Config& config, Mask& mask) {
    if (config.node == kDone) {
        mask.first = sets_.sparse({});
        return;
    }
    tasks_.clear();
    context_dependent_.clear();
    found_.clear();
    spans_.clear();
    ended_ = nullptr;  // of a run that a limit cut off
    mask.first = kNoTokens;
    if (machine.forks()) find_forked_mask(machine, config, mask);
    else {
        if (!visited_.empty()) visited_.clear();
        opened_ = taken_ = 0;
        tasks_.push_back({0, config});
        drain_worklist(machine, mask);
    }
    if (mask.first == kNoTokens) mask.first = sets_.sparse({});
    mask.more = keep_parts(0, 0);
    mask.context_dependent = !context_dependent_.empty();
    if (mask.context_dependent) step_through_context_dependent(machine, config, mask);
}

void MaskEngine::step_through_context_dependent(Machine& machine, const Config& config, Mask& mask) {
    std::vector<std::uint32_t> legal;
    std::sort(context_dependent_.begin(), context_dependent_.end());
    context_dependent_.erase(std::unique(context_dependent_.begin(), context_dependent_.end()), context_dependent_.end());
    for (std::uint32_t t : context_dependent_) {
        below_.assign(1, config);
        for (char b : vocabulary_.token(t)) {
            machine.step_all(below_, static_cast<std::uint8_t>(b), next_);
            below_.swap(next_);
        }
        if (!below_.empty()) legal.push_back(t);
    }
    if (!legal.empty()) mask.last = sets_.sparse(legal);
}

void MaskEngine::drain_worklist(Machine& machine, Mask& mask) {
    while (true) {
        while (opened_ && tasks_.size() == open_[opened_ - 1].tasks) close_summary(machine);
        if (tasks_.empty()) return;
        const Task task = tasks_.back();
        tasks_.pop_back();
        fuel_.spend(kTaskWork);
        if (task.config.node == kDone) {
            if (ended_) ended_->push_back(task.trie);
            continue;
        }
        if (++taken_ > 64 && visited_[task.trie].before(task.config)) {  // what it reaches is outside of what is recorded
            for (std::size_t i = 0; i < opened_; ++i) open_[i].whole = false;
            continue;
        }
        take(machine, task, mask);
    }
}

void MaskEngine::take(Machine& machine, const Task& task, Mask& mask) {
    if (!machine.is_leaf(task.config) && shortcuts_.marks) {
        if (take_summary(machine, task)) return;
        if (take_keys(machine, task) || take_punctuation(machine, task)) return;
    }
    const WalkResult made = run(machine, task.trie, task.config);
    if (task.trie == 0) mask.first = made.tokens;  // the only one that may clear some
    else if (!sets_[made.tokens].data.empty()) found_.push_back(made.tokens);
    if (made.context_dependent != kNoTokens) {
        context_dependent_.insert(context_dependent_.end(), sets_[made.context_dependent].data.begin(), sets_[made.context_dependent].data.end());
        for (std::size_t i = 0; i < opened_; ++i) open_[i].whole = false;
    }
    if (made.suffix_trie) leave(machine, made.suffix_trie, task.config);
}

// A suffix trie is left where the component of a configuration has ended: for what is below it.
void MaskEngine::leave(Machine& machine, std::uint32_t suffix_trie, const Config& config) {
    if (trail_) return leave(*trail_, suffix_trie, config.parent);
    if (opened_ && open_[opened_ - 1].config.parent == config.parent) {
        open_[opened_ - 1].exits.push_back(suffix_trie);
        return;
    }
    below_.clear();
    machine.resume(config.parent, below_);
    for (const Config& c : below_) go_on(suffix_trie, c);
}

void MaskEngine::go_on(std::uint32_t suffix_trie, const Config& c) {
    if (trail_) return trail_->tasks.push_back({suffix_trie, c});
    if (opened_) {
        SummaryBuilder& last = open_[opened_ - 1];
        if (last.by_entry && c.node == last.config.node && c.parent == last.config.parent && phase_of(c.state) == Phase::after) {
            last.continuations.push_back(suffix_trie);
            return;
        }
    }
    tasks_.push_back({suffix_trie, c});
}

// What is known already of a component over a suffix trie; or it is begun to be recorded. True: there is nothing left to do.
bool MaskEngine::take_summary(Machine& machine, const Task& task) {
    const Config& c = task.config;
    const AnalysedNode& k = machine.component(c.node);
    const Phase phase = phase_of(c.state);
    if (task.trie == 0 || k.unique || (k.kind != NodeKind::object && k.kind != NodeKind::array) || (phase != Phase::after && phase != Phase::colon)) return false;
    const bool by_entry = phase == Phase::colon && !k.bounded;
    const Key key{task.trie, k.id, c.state, by_entry ? kAnyEntries : c.regs};
    const ComponentSummary* known = at_->summaries.find(key);
    if (known) {
        hits_.fetch_add(1, std::memory_order_relaxed);
        std::uint32_t part = known->parts.at;
        for (std::uint32_t i = 0; i < known->parts.sets; ++i) found_.push_back(at_->parts[part++]);
        for (std::uint32_t i = 0; i < known->parts.spans; ++i, part += 2) spans_.push_back({at_->parts[part], at_->parts[part + 1]});
        for (std::uint32_t i = 0; i < known->exits; ++i) leave(machine, at_->parts[part++], c);
        for (std::uint32_t i = 0; i < known->continuations; ++i) go_on(at_->parts[part++], machine.after_value(c, rest_of(c.state) >> 8));
        return true;
    }
    if (open_.size() == opened_) open_.emplace_back();
    SummaryBuilder& made = open_[opened_++];
    made.key = key;
    made.config = c;
    made.tasks = tasks_.size();
    made.sets = found_.size();
    made.spans = spans_.size();
    made.by_entry = by_entry;
    made.whole = true;
    made.exits.clear();
    made.continuations.clear();
    return false;
}

void MaskEngine::close_summary(Machine& machine) {
    SummaryBuilder& last = open_[--opened_];
    if (last.whole) {
        ComponentSummary made;
        made.parts = keep_parts(last.sets, last.spans);
        made.exits = static_cast<std::uint32_t>(last.exits.size());
        made.continuations = static_cast<std::uint32_t>(last.continuations.size());
        for (const auto* some : {&last.exits, &last.continuations}) at_->parts.insert(at_->parts.end(), some->begin(), some->end());
        at_->summaries.get(last.key) = made;
    }
    for (const std::uint32_t suffix_trie : last.exits) leave(machine, suffix_trie, last.config);
    if (!last.continuations.empty()) {
        const Config behind = machine.after_value(last.config, rest_of(last.config.state) >> 8);
        for (const std::uint32_t suffix_trie : last.continuations) go_on(suffix_trie, behind);
    }
}

// The names that may come, of all that the object has; after each the suffix trie is left for its colon.
bool MaskEngine::take_keys(Machine& machine, const Task& task) {
    const Config& c = task.config;
    if (machine.component(c.node).kind != NodeKind::object || phase_of(c.state) != Phase::key) return false;
    const KeyIndex all = key_index_of(machine, task);
    if (!all.known) return false;
    fuel_.spend(all.names.end - all.names.begin + all.ways.end - all.ways.begin);
    std::vector<std::uint32_t>& before = may_come_;  // by name: how many that may come are before it
    before.assign(1, 0);
    const Machine::AllowedKeys opens(machine, c.node, c.regs);
    for (std::uint32_t n = all.names.begin; n < all.names.end; ++n) {
        const AutomatonCache::KeyExit name = at_->named[n];
        const bool open = opens(name.label);
        before.push_back(before.back() + open);
        if (open && name.suffix_trie) go_on(name.suffix_trie, {c.node, phase_state(Phase::colon, name.label << 8), c.regs, c.parent});
    }
    const std::size_t others = spans_.size();
    std::size_t count = 0;
    for (std::uint32_t w = all.ways.begin; w < all.ways.end; ++w) {
        const AutomatonCache::KeyRange way = at_->ways[w];
        if (before[way.first] == before[way.last]) continue;
        count += way.end - way.begin;
        if (spans_.size() > others && spans_.back().end == way.begin) spans_.back().end = way.end;
        else spans_.push_back({way.begin, way.end});
    }
    if (count <= kMaxSpans) return true;
    row_.assign(words_, 0);
    for (std::size_t i = others; i < spans_.size(); ++i)
        for (const std::uint32_t t : at_->tokens(spans_[i])) row_[t >> 5] |= 1u << (t & 31);
    spans_.resize(others);
    found_.push_back(sets_.row(row_));
    return true;
}

MaskEngine::KeyIndex MaskEngine::key_index_of(Machine& machine, const Task& task) {
    const Config& c = task.config;
    const Key key{task.trie, machine.component(c.node).id, c.state, 0};
    if (const KeyIndex* known = at_->names.find(key)) {
        hits_.fetch_add(1, std::memory_order_relaxed);
        return *known;
    }
    ++misses_;
    const TrieForest grove = suffix_tries_.grove(task.trie);
    const TokenTrie& x = *grove.trie;
    KeyWalk walked;
    if (!walked.run(machine.pool(), grove, rest_of(c.state))) return at_->names.add(key, {{}, {}, false});
    fuel_.spend(kTaskWork * (walked.labels.size() + walked.places.size()));
    const auto size = [](const auto& all) { return static_cast<std::uint32_t>(all.size()); };
    auto& named = at_->named;
    auto& ways = at_->ways;
    auto& listed = at_->listed;
    KeyIndex made{{size(named), 0}, {size(ways), 0}, true};
    for (const std::uint32_t label : walked.labels) named.push_back({label, 0});
    for (const KeyWalk::Place& place : walked.places) {
        const auto here = x.tokens_at(place.node);
        const std::uint32_t begin = size(listed);
        listed.insert(listed.end(), here.begin(), here.end());
        if (size(ways) > made.ways.begin && ways.back().first == place.first && ways.back().last == place.last) ways.back().end = size(listed);
        else ways.push_back({place.first, place.last, begin, size(listed)});
    }
    const ByteSet colon = machine.begins({c.node, phase_state(Phase::colon), c.regs, kBottom});
    std::vector<std::uint32_t> pieces;
    std::sort(walked.exits.begin(), walked.exits.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (std::size_t at = 0; at < walked.exits.size();) {
        const std::uint32_t name = walked.exits[at].name;
        for (pieces.clear(); at < walked.exits.size() && walked.exits[at].name == name; ++at)
            for (std::uint32_t n = walked.exits[at].node, child = n + 1; child < x.end[n]; child = x.end[child])
                if (colon.contains(x.byte[child])) pieces.push_back(child);
        named[made.names.begin + name].suffix_trie = suffix_tries_.behind(x, pieces);
    }
    made.names.end = size(named);
    made.ways.end = size(ways);
    return at_->names.add(key, made);
}

// The canonical set among a few that holds these bytes, so that suffix tries are shared: what follows JSON's punctuation.
ByteSet MaskEngine::canonical(const ByteSet& bytes) {
    if (bytes.empty()) return bytes;
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

// White space, then a text, as a leaf that every grammar shares.
MaskEngine::PunctuationLeaf& MaskEngine::mark_of(ExprPool& pool, std::string_view text, bool spaced) {
    for (PunctuationLeaf& mark : punctuation_)
        if (mark.spaced == spaced && mark.text == text) return mark;
    if (punctuation_.size() >= kMostMarks) punctuation_.clear();
    ExprId e = kEmpty;
    for (std::size_t i = text.size(); i-- > 0;) e = pool.concat(pool.set(ByteSet::range(static_cast<std::uint8_t>(text[i]), static_cast<std::uint8_t>(text[i]))), e);
    if (spaced) e = pool.concat(pool.repeat(pool.set(kBlank), text.empty() ? 1 : 0, kInfinite), e);
    punctuation_.push_back({std::string(text), spaced, e, {}});
    return punctuation_.back();
}

const WalkResult& MaskEngine::result_of_punctuation(ExprPool& pool, std::uint32_t trie, PunctuationLeaf& mark, const ByteSet& follow) {
    auto at = std::find_if(mark.ids.begin(), mark.ids.end(), [&](const auto& entry) { return entry.first == follow; });
    if (at == mark.ids.end() && mark.ids.size() >= kMostFollows) {
        mark.ids.clear();
        at = mark.ids.end();
    }
    if (at == mark.ids.end()) at = mark.ids.insert(at, {follow, leaf_id(follow)});
    const Key key{trie, at->second, mark.expr, trie == 0};  // as a bare run: its tokens are added without changes
    if (Known* known = memo_.find(key)) {
        known->time = time_;
        return known->run;
    }
    ++misses_;
    ++time_;
    used_ += kRunBytes;
    return memo_.add(key, {walk_leaf(pool, trie, mark.expr, follow), time_}).run;
}

// Over a trie, and what is left after it, which `after` continues with.
void MaskEngine::take_text(Machine& machine, std::uint32_t trie, bool spaced, std::string_view text, std::span<const Config> after) {
    ByteSet follow;
    for (const Config& c : after) follow |= machine.begins(c);
    follow = canonical(follow);
    if (text.empty())
        for (char b : kSpace) follow.erase(static_cast<std::uint8_t>(b));
    const WalkResult made = result_of_punctuation(machine.pool(), trie, mark_of(machine.pool(), text, spaced), follow);
    if (!sets_[made.tokens].data.empty()) found_.push_back(made.tokens);
    if (made.suffix_trie)
        for (const Config& c : after) go_on(made.suffix_trie, c);
}

// The text that ends the component.
void MaskEngine::take_closing(Machine& machine, const Task& task, bool spaced, std::string_view text) {
    const ByteSet follow = canonical(machine.component(task.config.node).follow);
    const WalkResult made = result_of_punctuation(machine.pool(), task.trie, mark_of(machine.pool(), text, spaced), follow);
    if (!sets_[made.tokens].data.empty()) found_.push_back(made.tokens);
    if (made.suffix_trie) leave(machine, made.suffix_trie, task.config);
}

// Takes punctuation and the white space around it, where a configuration of an object or array continues with nothing else.
// Returns false if it is at another place, or if white space has another meaning there.
bool MaskEngine::take_punctuation(Machine& machine, const Task& task) {
    const Config c = task.config;
    const AnalysedNode& k = machine.component(c.node);
    if ((k.kind != NodeKind::object && k.kind != NodeKind::array) || k.unique) return false;
    const Punctuation& marks = *k.punctuation;
    const Phase phase = phase_of(c.state);
    const std::uint32_t at = rest_of(c.state);
    std::string_view text, closing;
    switch (phase) {
        case Phase::open: text = std::string_view(marks.open).substr(at); break;
        case Phase::first: closing = marks.close; break;
        case Phase::colon: text = std::string_view(marks.colon).substr(at & 0xff); break;
        case Phase::gap:
        case Phase::value: break;
        case Phase::after:
            text = marks.comma;
            closing = marks.close;
            break;
        case Phase::comma: text = std::string_view(marks.comma).substr(at); break;
        case Phase::close: closing = std::string_view(marks.close).substr(at); break;
        default: return false;
    }
    const bool spaced = machine.is_spaced(c);
    if (marks.space && !spaced && (phase == Phase::first || phase == Phase::gap || phase == Phase::value || phase == Phase::after || (phase == Phase::colon && !(at & 0xff))))
        return false;  // punctuation that begins with white space
    if (spaced && phase != Phase::after && phase != Phase::colon) {
        after_.clear();
        machine.after_space(c, after_);
        for (const Config& one : after_)
            if (machine.begins(one).meets(kBlank)) return false;
        take_text(machine, task.trie, true, {}, after_);
    }
    if (!text.empty() && step_along(machine, c, text)) take_text(machine, task.trie, spaced, text, after_);
    if (!closing.empty() && (phase == Phase::close || machine.may_close(c))) take_closing(machine, task, spaced, closing);
    return true;
}

// What comes of a configuration by some bytes, in after_; whether anything does.
bool MaskEngine::step_along(Machine& machine, const Config& c, std::string_view bytes) {
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
