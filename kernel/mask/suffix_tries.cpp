#include "guideway/mask/suffix_tries.h"

#include <algorithm>

#include "guideway/base/sort_unique.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxMerged = 3000;  // maximum number of nodes that are copied into a separate trie

}  // namespace

// Many nodes of the vocabulary's trie become a list of subtrees (`tops`); fewer, or those of another trie, are merged.
TrieId SuffixTries::after_exits(const TokenTrie& x, std::vector<std::uint32_t>& exits) {
    if (exits.empty()) return kNoTrie;
    fuel_.spend(exits.size());
    sort_unique(exits);
    if (exits.size() > kMaxPieces) return find_after_exits(x, exits);
    std::uint64_t h = reinterpret_cast<std::uintptr_t>(&x);
    for (const std::uint32_t piece : exits) h = mix(h, piece);
    Recent& recent = recent_[h % kRecent];
    if (recent.trie != &x || recent.exits != exits) recent = {&x, exits, find_after_exits(x, exits)};
    return recent.id;
}

TrieId SuffixTries::find_after_exits(const TokenTrie& x, const std::vector<std::uint32_t>& exits) {
    std::size_t nodes = 0;
    for (std::uint32_t p : exits) nodes += x.end[p] - p;
    SuffixTrie made;
    if (&x == &trie_ && nodes > std::min<std::size_t>(kMaxMerged, trie_.size() / 8)) made.tops = exits;
    else {
        std::vector<Spot> spots;
        for (std::uint32_t p : exits) spots.push_back({&x, p});
        made.trie = merged(std::move(spots));
    }
    return keep(std::move(made));
}

TrieId SuffixTries::keep(SuffixTrie made) {
    if (made.tops.empty())
        for (const std::uint16_t depth : made.trie.depth) made.reach = std::max<std::uint32_t>(made.reach, depth);
    else made.reach = longest_;
    std::uint64_t h = made.tops.size();
    for (std::uint32_t top : made.tops) h = mix(h, top);
    for (std::uint64_t word : made.trie.block()) h = mix(h, word);
    auto [first, last] = ids_.equal_range(h);
    for (; first != last; ++first)
        if (const SuffixTrie& known = stored(first->second); known.tops == made.tops && known.trie == made.trie) return first->second;
    for (std::uint32_t top : made.tops) made.forest.parts.push_back({top, trie_.end[top], trie_.depth[top] - 1u});
    if (made.tops.empty()) made.forest.parts.push_back({1, made.trie.size(), 0});
    auto kept = std::make_unique<SuffixTrie>(std::move(made));
    kept->forest.trie = kept->tops.empty() ? &kept->trie : &trie_;
    if (free_.empty()) {
        kept_.emplace_back();
        free_.push_back(TrieId{static_cast<std::uint32_t>(kept_.size())});
    }
    const TrieId id = free_.back();
    ids_.emplace(h, id);
    // Nothing below throws.
    free_.pop_back();
    bytes_ += kept->bytes();
    kept_[raw(id) - 1] = std::move(kept);
    return id;
}

void SuffixTries::spots_of(TrieId id, std::vector<Spot>& spots) const {
    for (const TrieForest& here = forest(id); const TrieForest::Part& part : here.parts)
        for (std::uint32_t n = part.begin; n < part.end; n = here.trie->end[n]) spots.push_back({here.trie, n});
}

TrieId SuffixTries::without(TrieId id, const std::vector<std::uint32_t>& tokens) {
    std::vector<Spot> spots;
    spots_of(id, spots);
    TokenTrie left = merged(std::move(spots), tokens);
    return left.tokens.empty() ? kNoTrie : of(std::move(left));
}

TrieId SuffixTries::united(std::span<const TrieId> ids) {
    std::vector<Spot> spots;
    for (const TrieId id : ids) spots_of(id, spots);
    return spots.empty() ? kNoTrie : of(merged(std::move(spots)));
}

// One trie of the subtrees at these spots: its texts begin with the byte of the spot.
TokenTrie SuffixTries::merged(std::vector<Spot> spots, const std::vector<std::uint32_t>& dropped) {
    struct Group {  // nodes that become one; or, if `close` is not 0, the number of a node of `builder` to close
        std::vector<Spot> spots;
        std::uint32_t depth, close;
    };
    TokenTrieBuilder builder;
    std::vector<Group> todo;
    std::vector<std::uint32_t> tokens;
    auto open_groups = [&](std::vector<Spot>& from, std::uint32_t depth) {  // last byte first: a stack
        std::stable_sort(from.begin(), from.end(), [](const Spot& a, const Spot& b) { return a.byte() > b.byte(); });
        for (std::size_t i = 0, j; i < from.size(); i = j) {
            for (j = i; j < from.size() && from[j].byte() == from[i].byte(); ++j) {
            }
            todo.push_back({{from.begin() + static_cast<std::ptrdiff_t>(i), from.begin() + static_cast<std::ptrdiff_t>(j)}, depth, 0});
        }
    };
    open_groups(spots, 1);
    while (!todo.empty()) {
        Group group = std::move(todo.back());
        todo.pop_back();
        if (group.close) {
            builder.close(group.close);
            continue;
        }
        fuel_.spend(20 * group.spots.size());
        const std::uint32_t made = builder.open(group.spots[0].byte(), group.depth);
        todo.push_back({{}, 0, made});
        tokens.clear();
        spots.clear();
        for (const auto& [trie, n] : group.spots) {
            const auto here = trie->tokens_at(n);
            tokens.insert(tokens.end(), here.begin(), here.end());
            for (std::uint32_t c = n + 1; c < trie->end[n]; c = trie->end[c]) spots.push_back({trie, c});
        }
        std::sort(tokens.begin(), tokens.end());
        for (std::uint32_t t : tokens)
            if (!std::binary_search(dropped.begin(), dropped.end(), t)) builder.token(t);
        open_groups(spots, group.depth + 1);
    }
    return builder.build();
}

TrieId SuffixTries::of(TokenTrie trie) {
    SuffixTrie made;
    made.trie = std::move(trie);
    return keep(std::move(made));
}

template <class F>
void SuffixTries::each_of_alphabet(const ByteSet& bytes, F&& f) const {
    ByteSet wanted = bytes;
    wanted.insert('"');
    std::vector<ChildFilter> filters{{trie_, 0, wanted}};  // by depth
    std::uint32_t quoted = 0;                              // end of the subtree of the last quote: all of its nodes belong
    for (std::uint32_t i = 1; i < trie_.size();) {
        const std::size_t depth = trie_.depth[i];
        const std::uint8_t byte = trie_.byte[i];
        if (i >= quoted && !wanted.contains(byte)) {
            i = std::max(trie_.end[i], filters[depth - 1].next(trie_, i));
            continue;
        }
        fuel_.spend(1);
        if (byte == '"' && i >= quoted) quoted = trie_.end[i];
        if (!f(i)) return;
        if (filters.size() <= depth) filters.resize(depth + 1);
        filters[depth] = ChildFilter(trie_, i, wanted);
        ++i;
    }
}

bool SuffixTries::alphabet_exceeds(const ByteSet& bytes, std::uint32_t most) const {
    std::uint32_t made = 0;
    each_of_alphabet(bytes, [&](std::uint32_t) { return ++made <= most; });
    return made > most;
}

TrieId SuffixTries::of_alphabet(const ByteSet& bytes, std::uint32_t most) {
    if (alphabet_exceeds(bytes, most)) return kVocabularyTrie;
    TokenTrieBuilder builder;
    std::vector<std::uint32_t> open;  // nodes, from the root down
    auto close = [&](std::size_t depth) {
        for (; open.size() >= depth; open.pop_back()) builder.close(open.back());
    };
    each_of_alphabet(bytes, [&](std::uint32_t i) {
        close(trie_.depth[i]);
        open.push_back(builder.open(trie_.byte[i], trie_.depth[i]));
        for (const std::uint32_t t : trie_.tokens_at(i)) builder.token(t);
        return true;
    });
    close(1);
    return of(builder.build());
}

bool SuffixTries::contains_any(TrieId id, const std::vector<std::uint32_t>& tokens) const {
    GUIDEWAY_DCHECK(std::ranges::is_sorted(tokens));
    if (id == kNoTrie || tokens.empty()) return false;
    const auto& own = stored(id).trie.tokens;
    return !stored(id).tops.empty() ||
           std::any_of(own.begin(), own.end(), [&](std::uint32_t t) { return std::binary_search(tokens.begin(), tokens.end(), t); });
}

void SuffixTries::sweep(const std::vector<bool>& used) {
    recent_.assign(kRecent, {});
    free_.reserve(kept_.size());  // an allocation that failed below would leave an id without its trie
    std::erase_if(ids_, [&](const auto& entry) {
        if (used[raw(entry.second)]) return false;
        bytes_ -= kept_[raw(entry.second) - 1]->bytes();
        kept_[raw(entry.second) - 1].reset();
        free_.push_back(entry.second);
        return true;
    });
}

void SuffixTries::clear() {
    kept_.clear();
    free_.clear();
    recent_.assign(kRecent, {});
    ids_.clear();
    bytes_ = 0;
}

}  // namespace guideway
