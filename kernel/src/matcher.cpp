#include "guideway/matcher.h"

#include <algorithm>

#include "guideway/error.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxForced = 4096;         // bytes looked ahead at once
constexpr std::uint32_t kMaxFollowed = 1'000'000;  // bytes of a completion that is spelled out
constexpr std::size_t kMaxWork = 20'000'000;     // configurations stepped to find completions, in one call
constexpr std::size_t kMaxRemembered = 1 << 18;  // configurations whose finish is remembered

}  // namespace

Matcher::Matcher(std::shared_ptr<const Automaton> automaton) : automaton_(std::move(automaton)) {
    const std::lock_guard guard(automaton_->store_->lock);
    Configs first;
    automaton_->machine_->start(first);
    std::sort(first.begin(), first.end());
    first.erase(std::unique(first.begin(), first.end()), first.end());
    history_ = std::move(first);
    ends_.push_back(history_.size());
}

Configs Matcher::now() const {
    const std::size_t from = ends_.size() > 1 ? ends_[ends_.size() - 2] : 0;
    return {history_.begin() + static_cast<std::ptrdiff_t>(from), history_.end()};
}

bool Matcher::accepting(const Configs& configs) const {
    return std::any_of(configs.begin(), configs.end(), [&](const Config& c) { return automaton_->machine_->accepting(c); });
}

bool Matcher::is_accepting() const {
    const std::lock_guard guard(automaton_->store_->lock);
    return !finished_ && accepting(now());
}

void Matcher::check_row(std::span<std::uint32_t> row) const {
    const std::uint32_t words = automaton_->vocabulary_->words();
    if (row.size() != words)
        throw Error(ErrorKind::argument, "a mask row has " + std::to_string(words) + " words for this vocabulary, not " + std::to_string(row.size()));
}

void Matcher::fill_unlocked(const Configs& configs, std::span<std::uint32_t> row) const {
    if (finished_) std::fill(row.begin(), row.end(), 0);
    else automaton_->store_->runs.fill(*automaton_->machine_, configs, row);
    if (finished_ || accepting(configs))
        for (std::uint32_t t : automaton_->vocabulary_->eos()) row[t >> 5] |= 1u << (t & 31);
}

void Matcher::fill_mask(std::span<std::uint32_t> row) const {
    check_row(row);
    const std::lock_guard guard(automaton_->store_->lock);
    fill_unlocked(now(), row);
}

bool Matcher::step_token(Configs& configs, std::uint32_t token) const {
    const std::string& bytes = automaton_->vocabulary_->token(token);
    Configs next;
    for (char b : bytes) {
        automaton_->machine_->step_all(configs, static_cast<std::uint8_t>(b), next);
        configs.swap(next);
        if (configs.empty()) return false;
    }
    return !bytes.empty();
}

void Matcher::advance(std::int64_t id) {
    const Vocabulary& vocabulary = automaton_->vocabulary();
    if (id < 0 || id >= std::int64_t{vocabulary.size()})
        throw Error(ErrorKind::token, "token " + std::to_string(id) + " is not in a vocabulary of " + std::to_string(vocabulary.size()));
    const auto token = static_cast<std::uint32_t>(id);
    if (finished_) throw Error(ErrorKind::rejected, "token " + std::to_string(token) + " comes after the end of the text");
    const std::lock_guard guard(automaton_->store_->lock);
    Configs configs = now();
    if (vocabulary.is_eos(token)) {
        if (!accepting(configs))
            throw Error(ErrorKind::rejected, "the text is not complete: end token " + std::to_string(token) + " is not legal yet");
        finished_ = true;
        return;
    }
    if (!step_token(configs, token)) throw Error(ErrorKind::rejected, "token " + std::to_string(token) + " is not legal here");
    history_.insert(history_.end(), configs.begin(), configs.end());
    ends_.push_back(history_.size());
}

void Matcher::rollback(std::size_t count) {
    if (count > position())
        throw Error(ErrorKind::argument, "cannot roll back " + std::to_string(count) + " of " + std::to_string(position()) + " tokens");
    if (count && finished_) {
        finished_ = false;
        --count;
    }
    ends_.resize(ends_.size() - count);
    history_.resize(ends_.back(), Config{});
}

std::size_t Matcher::validate(std::span<const std::int64_t> tokens) const {
    const std::lock_guard guard(automaton_->store_->lock);
    const Vocabulary& vocabulary = automaton_->vocabulary();
    Configs configs = now();
    bool finished = finished_;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (finished || tokens[i] < 0 || tokens[i] >= std::int64_t{vocabulary.size()}) return i;
        const auto token = static_cast<std::uint32_t>(tokens[i]);
        if (vocabulary.is_eos(token)) {
            if (!accepting(configs)) return i;
            finished = true;
        } else if (!step_token(configs, token)) return i;
    }
    return tokens.size();
}

// As long as the text cannot end here and one byte alone can come.
std::string Matcher::forced_of(Configs configs) const {
    std::string forced;
    Configs next, only;
    while (forced.size() < kMaxForced && !accepting(configs)) {
        int byte = -1;
        for (unsigned b = 0; b < 256; ++b) {
            automaton_->machine_->step_all(configs, static_cast<std::uint8_t>(b), next);
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

std::string Matcher::forced_bytes() const {
    if (finished_) return {};
    const std::lock_guard guard(automaton_->store_->lock);
    return forced_of(now());
}

// Longest tokens first over the forced bytes, but only up to where no legal token could reach past their end: a token
// that could is left to be chosen, since the tokenizer might have joined it to what follows.
std::vector<std::uint32_t> Matcher::forced_tokens() const {
    if (finished_) return {};
    const std::lock_guard guard(automaton_->store_->lock);
    const Vocabulary& vocabulary = automaton_->vocabulary();
    const std::string forced = forced_of(now());
    std::vector<std::uint32_t> tokens;
    for (std::size_t at = 0; at < forced.size();) {
        std::uint32_t node = vocabulary.trie().child(0, static_cast<std::uint8_t>(forced[at])), best = kInfinite;
        std::size_t best_end = at, reached = at;
        while (node) {
            ++reached;
            if (const auto here = vocabulary.trie().tokens_at(node); !here.empty()) {
                best = here.front();
                best_end = reached;
            }
            if (reached == forced.size()) break;
            node = vocabulary.trie().child(node, static_cast<std::uint8_t>(forced[reached]));
        }
        const bool could_go_on = node && reached == forced.size() && vocabulary.trie().end[node] > node + 1;
        if (best == kInfinite || could_go_on) break;
        tokens.push_back(best);
        at = best_end;
    }
    return tokens;
}

std::uint32_t Matcher::cost(const Configs& configs) const {
    std::uint32_t bytes = kInfinite;
    for (const Config& c : configs) bytes = std::min(bytes, automaton_->machine_->cost(c));
    return bytes;
}

std::string Matcher::completion_of(Configs configs, std::size_t& work) const {
    if (const std::uint32_t bytes = cost(configs); bytes > kMaxFollowed)
        throw Error(ErrorKind::limit, "the shortest completion is too long to be spelled out: it has " + std::to_string(bytes) + " bytes or more");
    std::string text;
    Configs next;
    for (int b; (b = automaton_->machine_->best_byte(configs)) >= 0;) {
        automaton_->machine_->step_all(configs, static_cast<std::uint8_t>(b), next);
        configs.swap(next);
        text.push_back(static_cast<char>(b));
        work += configs.size() + 8;
        if (work > kMaxWork) throw Error(ErrorKind::limit, "the shortest completions are too long or too ambiguous to be followed");
    }
    return text;
}

std::string Matcher::completion() const {
    if (finished_) return {};
    const std::lock_guard guard(automaton_->store_->lock);
    std::size_t work = 0;
    return completion_of(now(), work);
}

std::uint32_t Matcher::finish(const Configs& configs, std::size_t& work) const {
    auto& memo = automaton_->finish_;
    if (configs.size() == 1)
        if (auto known = memo.find(configs[0]); known != memo.end()) return known->second;
    // Beyond a length that no budget has, bytes are as good as tokens.
    const std::uint32_t bytes = cost(configs);
    const std::uint32_t tokens = sum(bytes > kMaxFollowed ? bytes : automaton_->vocabulary_->fewest_tokens(completion_of(configs, work)), 1);
    if (memo.size() > kMaxRemembered) memo.clear();
    if (configs.size() == 1) memo.emplace(configs[0], tokens);
    return tokens;
}

std::uint32_t Matcher::tokens_to_finish() const {
    if (finished_) return 0;
    const std::lock_guard guard(automaton_->store_->lock);
    std::size_t work = 0;
    return finish(now(), work);
}

// Clears the bits of tokens that leave too little; returns an upper bound of what any legal token needs afterwards.
std::uint32_t Matcher::keep_within(const Configs& configs, std::span<std::uint32_t> row, std::uint32_t left, std::size_t& work) const {
    Machine& machine = *automaton_->machine_;
    const Vocabulary& vocabulary = automaton_->vocabulary();
    const Trie& trie = vocabulary.trie();
    std::vector<Configs> path{configs};
    std::uint32_t worst = 0;
    for (std::uint32_t i = 1; i < trie.size();) {
        const std::size_t depth = trie.depth[i];
        if (path.size() <= depth) path.resize(depth + 1);
        machine.step_all(path[depth - 1], trie.byte[i], path[depth]);
        const Configs& here = path[depth];
        if (here.empty()) {
            i = trie.end[i];
            continue;
        }
        if (const auto tokens = trie.tokens_at(i); !tokens.empty()) {
            const std::uint32_t bytes = cost(here);
            std::uint32_t needs = vocabulary.spells_every_byte() ? sum(bytes, 1) : kInfinite;
            // Not even the longest tokens would do: no need to look.
            if (sum(needs, 1) > left && bytes / vocabulary.longest() < left) needs = finish(here, work);
            worst = std::max(worst, needs);
            if (sum(needs, 1) > left)
                for (std::uint32_t t : tokens) row[t >> 5] &= ~(1u << (t & 31));
        }
        ++i;
    }
    return worst;
}

bool Matcher::fill_mask_within(std::span<std::uint32_t> row, std::uint32_t left) const {
    check_row(row);
    const std::lock_guard guard(automaton_->store_->lock);
    const Configs configs = now();
    std::size_t work = 0;
    if (finished_ || finish(configs, work) > left) {
        std::fill(row.begin(), row.end(), 0);
        return false;
    }
    fill_unlocked(configs, row);
    auto& memo = automaton_->worst_;
    if (configs.size() == 1)
        if (auto known = memo.find(configs[0]); known != memo.end() && sum(known->second, 1) <= left) return true;
    const std::uint32_t worst = keep_within(configs, row, left, work);
    if (memo.size() > kMaxRemembered) memo.clear();
    if (configs.size() == 1) memo.insert_or_assign(configs[0], worst);
    return true;
}

}  // namespace guideway
