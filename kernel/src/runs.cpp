#include "guideway/runs.h"

#include <algorithm>

namespace guideway {

std::uint32_t Runs::component_id(const Component& component) {
    if (component.kind != NodeKind::leaf) return next_component_++;
    auto [place, fresh] = leaf_ids_.emplace(component.follow, next_component_);
    if (fresh) ++next_component_;
    return place->second;
}

void Runs::clear() {
    memo_.clear();
    sets_.clear();
    residuals_.clear();
    residual_ids_.clear();
    used_ = 0;
}

void Runs::fill(Machine& machine, const Configs& configs, std::span<std::uint32_t> row) {
    trim();
    tasks_.clear();
    for (const Config& c : configs) tasks_.push_back({0, c});
    bool blank = true;  // the row holds nothing worth keeping yet
    std::unordered_map<std::uint32_t, Gone> gone;
    for (std::size_t count = 0; !tasks_.empty();) {
        const Task task = tasks_.back();
        tasks_.pop_back();
        if (task.config.node == kDone || (++count > 64 && gone[task.trie].before(task.config))) continue;
        const Run made = run(machine, task.trie, task.config);
        const TokenSet& set = sets_[made.tokens];
        if (set.dense && blank) std::copy(set.data.begin(), set.data.end(), row.begin());
        else {
            if (blank) std::fill(row.begin(), row.end(), 0);
            merge(set, row);
        }
        blank = false;
        if (made.residual == 0) continue;
        below_.clear();
        machine.resume(task.config.parent, below_);
        for (const Config& c : below_) tasks_.push_back({made.residual, c});
    }
    if (blank) std::fill(row.begin(), row.end(), 0);
}

void Runs::merge(const TokenSet& set, std::span<std::uint32_t> row) const {
    if (set.dense)
        for (std::size_t i = 0; i < words_; ++i) row[i] |= set.data[i];
    else
        for (std::uint32_t t : set.data) row[t >> 5] |= 1u << (t & 31);
}

Run Runs::run(Machine& machine, std::uint32_t trie, const Config& config) {
    const Key key{trie, machine.component(config.node).id, config.state, config.regs};
    auto known = memo_.find(key);
    if (known != memo_.end()) {
        ++hits_;
        return known->second;
    }
    ++misses_;
    const Run made = walk(machine, trie, config);
    memo_.emplace(key, made);
    used_ += sizeof(Key) + sizeof(Run) + 48;
    return made;
}

// A leaf needs one state per depth, and no stack.
Run Runs::walk_leaf(Machine& machine, const Trie& x, const Config& config) {
    ExprPool& pool = machine.pool();
    const ByteSet& follow = machine.component(config.node).follow;
    std::vector<ExprId> path{config.state};
    std::vector<std::uint32_t> tokens, pieces;
    for (std::uint32_t i = 1; i < x.size();) {
        const std::size_t depth = x.depth[i];
        const std::uint8_t byte = x.byte[i];
        const ExprId state = path[depth - 1], next = pool.next(state, byte);
        if (pool.nullable(state) && follow.contains(byte)) pieces.push_back(i);
        if (next == kNone) {
            i = x.end[i];
            continue;
        }
        for (std::uint32_t t : x.tokens_at(i)) tokens.push_back(t);
        if (next == kEmpty) {  // the leaf is left here, whatever follows
            for (std::uint32_t child = i + 1; child < x.end[i]; child = x.end[child]) pieces.push_back(child);
            i = x.end[i];
            continue;
        }
        if (path.size() <= depth) path.resize(depth + 1);
        path[depth] = next;
        ++i;
    }
    const std::uint32_t residual = pieces.empty() ? 0 : residual_of(x, pieces);
    return {keep(tokens), residual};
}

Run Runs::walk(Machine& machine, std::uint32_t id, const Config& config) {
    const Trie& x = trie(id);
    if (machine.is_leaf(config)) return walk_leaf(machine, x, config);
    Configs path{{config.node, config.state, config.regs, kBottom}};  // configurations of all depths, one after the other
    std::vector<std::size_t> begin{0, 1};                             // depth d: [begin[d], begin[d + 1])
    std::vector<std::uint32_t> tokens, pieces;
    Configs made;
    for (std::uint32_t i = 1; i < x.size();) {
        const std::size_t depth = x.depth[i];
        begin.resize(depth + 1);
        path.resize(begin[depth], Config{});
        Outcome outcome;
        made.clear();
        for (std::size_t c = begin[depth - 1]; c < begin[depth]; ++c) machine.step(path[c], x.byte[i], made, outcome);
        if (made.size() > 1) {
            std::sort(made.begin(), made.end());
            made.erase(std::unique(made.begin(), made.end()), made.end());
        }
        if (outcome.popped) pieces.push_back(i);
        if (made.empty()) {
            i = x.end[i];
            continue;
        }
        path.insert(path.end(), made.begin(), made.end());
        begin.push_back(path.size());
        const auto here = x.tokens_at(i);
        tokens.insert(tokens.end(), here.begin(), here.end());
        ++i;
    }
    const std::uint32_t residual = pieces.empty() ? 0 : residual_of(x, pieces);
    return {keep(tokens), residual};
}

// The subtrees at `pieces`, as suffixes that begin with the piece's own byte, merged into one trie.
std::uint32_t Runs::residual_of(const Trie& x, const std::vector<std::uint32_t>& pieces) {
    std::string arena;
    struct Span {
        std::size_t at, length;
        std::uint32_t token;
    };
    std::vector<Span> spans;
    std::string path;
    for (std::uint32_t piece : pieces) {
        const std::size_t base = x.depth[piece];
        for (std::uint32_t i = piece; i < x.end[piece]; ++i) {
            path.resize(x.depth[i] - base);
            path.push_back(static_cast<char>(x.byte[i]));
            const auto here = x.tokens_at(i);
            if (here.empty()) continue;
            for (std::uint32_t t : here) spans.push_back({arena.size(), path.size(), t});
            arena += path;
        }
    }
    std::vector<Suffix> suffixes;
    suffixes.reserve(spans.size());
    for (const Span& s : spans) suffixes.push_back({std::string_view(arena).substr(s.at, s.length), s.token});
    Trie made = Trie::of(suffixes);
    std::uint64_t h = made.size();
    for (std::size_t i = 0; i < made.byte.size(); ++i) h = mix(h, std::uint64_t{made.byte[i]} << 32 | made.end[i]);
    for (std::uint32_t t : made.tokens) h = mix(h, t);
    auto [first, last] = residual_ids_.equal_range(h);
    for (; first != last; ++first)
        if (residuals_[first->second - 1] == made) return first->second;
    used_ += made.bytes() + 64;
    residuals_.push_back(std::move(made));
    const auto id = static_cast<std::uint32_t>(residuals_.size());
    residual_ids_.emplace(h, id);
    return id;
}

std::uint32_t Runs::keep(const std::vector<std::uint32_t>& tokens) {
    TokenSet set;
    set.dense = tokens.size() > words_ / 2;
    if (set.dense) {
        set.data.assign(words_, 0);
        for (std::uint32_t t : tokens) set.data[t >> 5] |= 1u << (t & 31);
    } else set.data = tokens;
    used_ += set.data.size() * 4 + sizeof(TokenSet);
    sets_.push_back(std::move(set));
    return static_cast<std::uint32_t>(sets_.size() - 1);
}

}  // namespace guideway
