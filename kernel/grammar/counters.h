// Registers of more than 32 bits: interned records and texts. Equal ones have equal ids, so a register is one word.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/base/intern_table.h"

namespace guideway {

// Lists of words. Record 0 has only zeros, for any length.
class CounterRecords {
public:
    explicit CounterRecords(DroppableIndex& index) : index_(index) {}

    const std::uint32_t* at(std::uint32_t id, std::size_t words) {
        if (id) return words_.data() + begin_[id];
        if (zeros_.size() < words) zeros_.resize(words);
        return zeros_.data();
    }
    std::vector<std::uint32_t> copy(std::uint32_t id, std::size_t words) {
        const std::uint32_t* from = at(id, words);
        return {from, from + words};
    }
    // A copy of a record to be changed and interned. It is valid until the next call of `draft`.
    std::vector<std::uint32_t>& draft(std::uint32_t id, std::size_t words) {
        const std::uint32_t* from = at(id, words);
        draft_.assign(from, from + words);
        return draft_;
    }
    std::uint32_t intern(const std::vector<std::uint32_t>& record);
    std::size_t size() const { return begin_.size(); }

private:
    std::span<const std::uint32_t> words(std::uint32_t id) const {
        return std::span(words_).subspan(begin_[id], begin_[id + 1] - begin_[id]);
    }

    DroppableIndex& index_;
    std::vector<std::uint32_t> words_, zeros_, draft_;
    std::vector<std::size_t> begin_{0, 0};  // record i: [begin_[i], begin_[i + 1])
};

// Texts that leaves have read, as a trie: each is a shorter text and a piece. Text 0 is not known (machine.h says where); text 1
// is empty; text 2 represents all texts that no later result depends on.
class ReadTexts {
public:
    static constexpr std::uint32_t kUnknown = 0, kStart = 1, kIrrelevant = 2;

    explicit ReadTexts(DroppableIndex& index) : index_(index) {}

    std::uint32_t push(std::uint32_t read_text, std::string_view more) {
        if (read_text == kUnknown || read_text == kIrrelevant) return read_text;
        const auto hash = [](std::uint32_t before, std::string_view added) { return mix(before, std::hash<std::string_view>{}(added)); };
        const auto hash_of = [&](std::uint32_t id) { return hash(nodes_[id].before, added(nodes_[id])); };
        const auto same = [&](std::uint32_t id) { return nodes_[id].before == read_text && added(nodes_[id]) == more; };
        const std::uint64_t wanted = hash(read_text, more);
        const std::uint32_t known = index_.find(wanted, nodes_.size(), hash_of, same);
        if (known != InternTable::kMissing) return known;
        const std::size_t begin = text_.size();
        text_ += more;
        nodes_.push_back({read_text, static_cast<std::uint32_t>(more.size()), begin});
        index_.add(wanted);
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    std::string text(std::uint32_t read_text) const {
        std::vector<std::uint32_t> pieces;
        for (; read_text > kIrrelevant; read_text = nodes_[read_text].before) pieces.push_back(read_text);
        std::string made;
        for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) made += added(nodes_[*piece]);
        return made;
    }
    std::size_t size() const { return text_.size(); }

private:
    struct Node {
        std::uint32_t before, size;
        std::size_t begin;  // of the piece in `text_`
    };
    std::string_view added(const Node& node) const { return std::string_view(text_).substr(node.begin, node.size); }

    DroppableIndex& index_;
    std::vector<Node> nodes_ = std::vector<Node>(kIrrelevant + 1);  // the first three are the special texts
    std::string text_;
};

}  // namespace guideway
