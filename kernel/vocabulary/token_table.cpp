#include "guideway/vocabulary/token_table.h"

#include <algorithm>
#include <array>

#include "guideway/base/error.h"
#include "guideway/base/lengths.h"
#include "guideway/base/sort_unique.h"

namespace guideway {

namespace {

// The tokens that contain this byte.
std::vector<std::uint32_t> holders_of(std::uint8_t byte, const TokenBlock& tokens) {
    std::vector<std::uint32_t> found;
    for (std::size_t at = tokens.text.find(static_cast<char>(byte)); at != tokens.text.npos;) {
        const auto after = std::upper_bound(tokens.starts.begin(), tokens.starts.end(), static_cast<std::uint32_t>(at));
        found.push_back(static_cast<std::uint32_t>(after - tokens.starts.begin()) - 1);
        at = tokens.text.find(static_cast<char>(byte), *after);
    }
    return found;
}

}  // namespace

std::string special_text(std::uint32_t id) {
    std::string made(1, static_cast<char>(kSpecialByte));
    for (int shift = 24; shift >= 0; shift -= 8) made.push_back(static_cast<char>(id >> shift & 0xff));
    return made;
}

TokenTable::TokenTable(Bare, TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special)
    : starts_(tokens.starts), eos_(std::move(eos)) {
    sort_unique(eos_);
    std::vector<std::uint32_t> silent = special;
    silent.insert(silent.end(), eos_.begin(), eos_.end());
    sort_unique(silent);
    if (!silent.empty() && silent.back() >= size()) {
        const std::string all = std::to_string(size());
        throw Error(ErrorKind::argument, "id " + std::to_string(silent.back()) + " is not in a vocabulary of " + all + " tokens");
    }
    // The text between two replaced tokens is copied in one piece.
    std::uint32_t from = 0, moved = 0, by = 0;  // modulo 2^32: texts grow and shrink
    const auto keep_up_to = [&](std::uint32_t id, std::uint32_t at) {
        text_.append(tokens.text.substr(from, at - from));
        for (; by && moved < id; ++moved) starts_[moved] += by;
        moved = id;
    };
    const auto replace = [&](std::uint32_t id, std::string_view written) {
        const std::uint32_t begin = tokens.starts[id], end = tokens.starts[id + 1];
        keep_up_to(id + 1, begin);
        text_.append(written);
        from = end;
        by += static_cast<std::uint32_t>(written.size()) - (end - begin);
    };
    const std::vector<std::uint32_t> never = holders_of(kSpecialByte, tokens);
    for (std::size_t i = 0, j = 0; i < silent.size() || j < never.size();) {
        const std::uint32_t id = i < silent.size() && (j == never.size() || silent[i] <= never[j]) ? silent[i] : never[j];
        const bool is_special = i < silent.size() && silent[i] == id;
        i += is_special;
        j += j < never.size() && never[j] == id;
        const std::string_view name = tokens.view()[id];
        if (name.empty()) continue;
        if (is_special) names_.emplace_back(name, id);
        replace(id, is_special ? special_text(id) : std::string());
    }
    keep_up_to(size() + 1, static_cast<std::uint32_t>(tokens.text.size()));
    std::sort(names_.begin(), names_.end());
    std::array<bool, 256> single{};
    single[kSpecialByte] = true;  // it occurs in no text
    for (std::uint32_t id = 0; id < size(); ++id) {
        const std::uint32_t length = starts_[id + 1] - starts_[id];
        longest_ = std::max(longest_, length);
        if (length == 1) single[static_cast<std::uint8_t>(text_[starts_[id]])] = true;
        // Depths in the trie have 16 bits.
        if (length > 60'000) throw Error(ErrorKind::argument, "token " + std::to_string(id) + " is longer than 60,000 bytes");
    }
    spells_every_byte_ = std::all_of(single.begin(), single.end(), [](bool b) { return b; });
}

TokenTable::TokenTable(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special)
    : TokenTable(Bare{}, std::move(tokens), std::move(eos), special) {
    std::vector<Suffix> suffixes;
    for (std::uint32_t id = 0; id < size(); ++id)
        if (const std::string_view bytes = token(id); !bytes.empty()) suffixes.push_back({bytes, id});
    trie_ = TokenTrie::of(suffixes);
    subtrees_ = std::make_unique<SubtreeAlphabets>(trie_);
    plain_tokens_ = std::make_unique<PlainTokens>(*this);
}

bool TokenTable::is_eos(std::uint32_t id) const { return std::binary_search(eos_.begin(), eos_.end(), id); }

std::vector<std::uint32_t> TokenTable::special(std::string_view name) const {
    std::vector<std::uint32_t> found;
    for (auto at = std::lower_bound(names_.begin(), names_.end(), name, [](const auto& one, std::string_view b) { return one.first < b; });
         at != names_.end() && at->first == name; ++at)
        found.push_back(at->second);
    return found;
}

std::string TokenTable::shown(std::string_view bytes) const {
    std::string made;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (static_cast<std::uint8_t>(bytes[i]) != kSpecialByte) {
            made.push_back(bytes[i]);
            continue;
        }
        if (bytes.size() - i < kSpecialBytes) break;  // the common beginning of several special tokens: none of them is read
        std::uint32_t id = 0;
        for (std::size_t last = i + kSpecialBytes - 1; i < last;) id = id << 8 | static_cast<std::uint8_t>(bytes[++i]);
        for (const auto& [name, named] : names_)
            if (named == id) made += name;
    }
    return made;
}

std::vector<std::size_t> TokenTable::open_ends(std::string_view text) const {
    std::vector<std::size_t> made;
    for (std::size_t from = text.size() - std::min<std::size_t>(text.size(), longest_); from < text.size(); ++from) {
        std::uint32_t node = 0;
        std::size_t at = from;
        do node = trie_.child(node, static_cast<std::uint8_t>(text[at]));
        while (node && ++at < text.size());
        if (node && trie_.end[node] > node + 1) made.push_back(from);
    }
    return made;
}

std::uint32_t TokenTable::fewest_tokens(std::string_view text) const {
    std::vector<std::uint32_t> from(text.size() + 1, kInfinite);  // from[i]: fewest tokens that spell text[i:]
    from[text.size()] = 0;
    for (std::size_t i = text.size(); i-- > 0;) {
        std::uint32_t node = trie_.child(0, static_cast<std::uint8_t>(text[i]));
        for (std::size_t j = i + 1; node; ++j) {
            if (from[j] != kInfinite && !trie_.tokens_at(node).empty()) from[i] = std::min(from[i], from[j] + 1);
            if (j == text.size()) break;
            node = trie_.child(node, static_cast<std::uint8_t>(text[j]));
        }
    }
    return from[0];
}

}  // namespace guideway
