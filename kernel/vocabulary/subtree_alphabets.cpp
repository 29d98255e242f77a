#include "guideway/vocabulary/subtree_alphabets.h"

#include <algorithm>
#include <bit>
#include <compare>
#include <map>

#include "guideway/base/flat_file.h"
#include "guideway/base/simd.h"
#include "guideway/base/sort_unique.h"

namespace guideway {

namespace {

constexpr std::size_t kMaxBlocks = 400;  // of one set; a subtree with more has no set
constexpr std::uint32_t kBroken = 0xffffffff;

unsigned length_of(std::uint8_t lead) { return lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0; }

}  // namespace

class SubtreeAlphabetsBuilder {
public:
    explicit SubtreeAlphabetsBuilder(const TokenTrie& trie) : trie_(trie), ids_(trie.size()) {}

    std::vector<std::uint64_t> file() {
        intern({});
        for (std::uint32_t i = trie_.size(); i-- > 0;) {
            ids_[i] = set_below(i);
            // replaces sets inside the character: the nodes above use only those at the last bytes of characters
            if (const unsigned length = length_of(trie_.byte[i])) set_after(i, length - 1);
        }
        std::vector<std::uint16_t> below;
        for (const std::uint32_t id : ids_)
            below.push_back(id < SubtreeAlphabets::kUnknown ? static_cast<std::uint16_t>(id) : SubtreeAlphabets::kUnknown);
        number_blocks();
        characters();
        FlatWriter made;
        made.put(below);
        made.put(numbered_);
        made.put(members_);
        made.put(blocks_);
        made.put(characters_);
        return made.take();
    }

private:
    struct Atoms {
        std::uint64_t ascii[2] = {0, 0};
        std::vector<std::uint32_t> blocks;  // bytes of a prefix, left-aligned, then their number
        std::uint16_t left = 0;
        bool broken = false;
        friend std::strong_ordering operator<=>(const Atoms& a, const Atoms& b) {
            if (a.left != b.left) return a.left <=> b.left;
            if (a.ascii[0] != b.ascii[0]) return a.ascii[0] <=> b.ascii[0];
            if (a.ascii[1] != b.ascii[1]) return a.ascii[1] <=> b.ascii[1];
            if (a.blocks == b.blocks) return std::strong_ordering::equal;
            return a.blocks < b.blocks ? std::strong_ordering::less : std::strong_ordering::greater;
        }
    };

    std::uint32_t intern(Atoms atoms) {
        if (atoms.broken) return kBroken;
        sort_unique(atoms.blocks);
        if (atoms.blocks.size() > kMaxBlocks) return kBroken;
        const auto [place, fresh] = known_.emplace(std::move(atoms), static_cast<std::uint32_t>(sets_.size()));
        if (fresh) sets_.push_back(&place->first);
        return place->second;
    }

    void join(Atoms& atoms, std::uint32_t node) {
        if (ids_[node] == kBroken) {
            atoms.broken = true;
            return;
        }
        const Atoms& more = *sets_[ids_[node]];
        atoms.ascii[0] |= more.ascii[0];
        atoms.ascii[1] |= more.ascii[1];
        atoms.blocks.insert(atoms.blocks.end(), more.blocks.begin(), more.blocks.end());
    }

    // Adds the atoms below `node`, which is inside a character with `left` more bytes.
    void join_rest(Atoms& atoms, std::uint32_t node, std::uint32_t prefix, unsigned left) {
        const std::uint32_t size = prefix > 0xffff ? 3 : prefix > 0xff ? 2 : 1;
        if (left == 1 || trie_.end[node] == node + 1) atoms.blocks.push_back(prefix << (32 - 8 * size) | size);
        for (std::uint32_t c = node + 1; c < trie_.end[node] && !atoms.broken; c = trie_.end[c]) {
            const std::uint8_t b = trie_.byte[c];
            if (!is_continuation(b)) atoms.broken = true;
            else if (left == 1) join(atoms, c);
            else join_rest(atoms, c, prefix << 8 | b, left - 1);  // at most three levels
        }
    }

    std::uint32_t set_below(std::uint32_t node) {
        if (trie_.end[node] == node + 1) return 0;
        Atoms atoms;
        for (std::uint32_t c = node + 1; c < trie_.end[node] && !atoms.broken; c = trie_.end[c]) {
            const std::uint8_t b = trie_.byte[c];
            if (b < 0x80) {
                atoms.ascii[b >> 6] |= std::uint64_t{1} << (b & 63);
                join(atoms, c);
            } else if (length_of(b)) join_rest(atoms, c, b, length_of(b) - 1);
            else atoms.broken = true;
        }
        return intern(std::move(atoms));
    }

    // Sets the alphabet after the character, for a node inside it with `left` more bytes, and for the nodes below in the same
    // character.
    void set_after(std::uint32_t node, unsigned left) {
        if (trie_.end[node] == node + 1) return;
        Atoms atoms;
        atoms.left = static_cast<std::uint16_t>(left);
        for (std::uint32_t c = node + 1; c < trie_.end[node]; c = trie_.end[c]) {
            if (!is_continuation(trie_.byte[c])) atoms.broken = true;
            else if (left > 1) set_after(c, left - 1);  // at most three levels
            join(atoms, c);
        }
        ids_[node] = intern(std::move(atoms));
    }

    // Blocks are numbered in the order of their bytes, so that common prefixes are stepped once (self_loops.cpp).
    void number_blocks() {
        std::map<std::uint32_t, std::uint16_t> numbers;
        const std::size_t count = std::min<std::size_t>(sets_.size(), SubtreeAlphabets::kUnknown);
        for (std::size_t i = 0; i < count; ++i)
            for (std::uint32_t b : sets_[i]->blocks) numbers.emplace(b, 0);
        for (auto& [block, number] : numbers) {
            number = static_cast<std::uint16_t>(blocks_.size());
            const auto byte = [bytes = block](unsigned shift) { return static_cast<std::uint8_t>(bytes >> shift); };
            blocks_.push_back({byte(0), {byte(24), byte(16), byte(8)}});
        }
        for (std::size_t i = 0; i < count; ++i) {
            const Atoms& atoms = *sets_[i];
            numbered_.push_back({{atoms.ascii[0], atoms.ascii[1]},
                                 static_cast<std::uint32_t>(members_.size()),
                                 static_cast<std::uint16_t>(atoms.blocks.size()),
                                 atoms.left});
            for (std::uint32_t b : atoms.blocks) members_.push_back(numbers.at(b));
        }
    }

    void characters() {
        characters_.resize(trie_.tokens.size());
        std::vector<std::uint32_t> count{0};  // by depth
        for (std::uint32_t i = 0; i < trie_.size(); ++i) {
            const std::size_t depth = trie_.depth[i];
            count.resize(depth + 1);
            if (depth) count[depth] = count[depth - 1] + (is_continuation(trie_.byte[i]) ? 0 : 1);
            const auto here = static_cast<std::uint8_t>(std::min<std::uint32_t>(count[depth], 255));
            for (std::uint32_t p = trie_.first_token[i]; p < trie_.first_token[i + 1]; ++p) characters_[p] = here;
        }
    }

    const TokenTrie& trie_;
    std::vector<std::uint32_t> ids_;
    std::map<Atoms, std::uint32_t> known_;
    std::vector<const Atoms*> sets_;
    std::vector<SubtreeAlphabets::Set> numbered_;
    std::vector<std::uint16_t> members_;
    std::vector<SubtreeAlphabets::Block> blocks_;
    std::vector<std::uint8_t> characters_;
};

SubtreeAlphabets::SubtreeAlphabets(const TokenTrie& trie) : owned_(SubtreeAlphabetsBuilder(trie).file()) { lay_out(owned_); }

SubtreeAlphabets::SubtreeAlphabets(const TokenTrie& trie, std::span<const std::uint64_t> file) {
    lay_out(file);
    bool good = below_.size() == trie.size() && characters_.size() == trie.tokens.size();
    for (const Set& set : sets_) good = good && std::uint64_t{set.first} + set.count <= members_.size() && set.left <= 3;
    for (const Block& block : blocks_) good = good && block.size >= 1 && block.size <= 3;
    good = good && largest(below_, 1) <= sets_.size();  // unknown (0xffff) becomes 0
    good = good && (members_.empty() || largest(members_) < blocks_.size());
    if (!good) throw Error(ErrorKind::argument, "subtree alphabets with an index out of range");
}

void SubtreeAlphabets::lay_out(std::span<const std::uint64_t> file) {
    file_ = file;
    FlatReader reader(file);
    below_ = reader.view<std::uint16_t>();
    sets_ = reader.view<Set>();
    members_ = reader.view<std::uint16_t>();
    blocks_ = reader.view<Block>();
    characters_ = reader.view<std::uint8_t>();
    if (!reader.done()) throw Error(ErrorKind::argument, "subtree alphabets of a wrong size");
    most_ = static_cast<std::uint8_t>(largest(characters_));
}

bool SubtreeAlphabets::has_block(const std::uint8_t* bytes, unsigned size, bool or_longer) const {
    auto key = [](const std::uint8_t* from, unsigned count) {
        std::uint32_t made = 0;
        for (unsigned i = 0; i < count; ++i) made |= std::uint32_t{from[i]} << (24 - 8 * i);
        return made | count;
    };
    const std::uint32_t wanted = key(bytes, size);
    const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), wanted,
                                     [&](const Block& b, std::uint32_t value) { return key(b.bytes, b.size) < value; });
    if (at == blocks_.end()) return false;
    if (at->size == size && std::equal(bytes, bytes + size, at->bytes)) return true;
    return or_longer && at->size > size && std::equal(bytes, bytes + size, at->bytes);
}

}  // namespace guideway
