// Registers of more than 32 bits: interned records and texts. Equal ones have equal ids, so a register is one word.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guideway/base/byte_set.h"
#include "guideway/base/id.h"
#include "guideway/base/intern_table.h"

namespace guideway {

// The register of a configuration: what its component has read so far (machine_core.h).
enum class Register : std::uint32_t {};

// Lists of words. Record 0 has only zeros, for any length.
class CounterRecords {
public:
    explicit CounterRecords(DroppableIndex<Register>& index) : index_(index) {}

    const std::uint32_t* at(Register id, std::size_t words) {
        if (raw(id)) return words_.data() + begin_[raw(id)];
        if (zeros_.size() < words) zeros_.resize(words);
        return zeros_.data();
    }
    std::vector<std::uint32_t> copy(Register id, std::size_t words) {
        const std::uint32_t* from = at(id, words);
        return {from, from + words};
    }
    // A copy of a record to be changed and interned. It is valid until the next call of `draft`.
    std::vector<std::uint32_t>& draft(Register id, std::size_t words) {
        const std::uint32_t* from = at(id, words);
        draft_.assign(from, from + words);
        return draft_;
    }
    Register intern(const std::vector<std::uint32_t>& record);
    std::size_t size() const { return begin_.size(); }

private:
    std::span<const std::uint32_t> words(Register id) const {
        return std::span(words_).subspan(begin_[raw(id)], begin_[raw(id) + 1] - begin_[raw(id)]);
    }

    DroppableIndex<Register>& index_;
    std::vector<std::uint32_t> words_, zeros_, draft_;
    std::vector<std::size_t> begin_{0, 0};  // record i: [begin_[i], begin_[i + 1])
};

enum class ReadText : std::uint32_t {};

// Texts that leaves have read, as a trie: each is a shorter text and a piece. Text 0 is not known (machine.h says where); text 1
// is empty; text 2 represents all texts that no later result depends on.
class ReadTexts {
public:
    static constexpr ReadText kUnknown{0}, kStart{1}, kIrrelevant{2};

    explicit ReadTexts(DroppableIndex<ReadText>& index) : index_(index) {}

    ReadText push(ReadText read_text, std::string_view more) {
        if (read_text == kUnknown || read_text == kIrrelevant) return read_text;
        const auto hash = [](ReadText before, std::string_view added) { return mix(raw(before), std::hash<std::string_view>{}(added)); };
        const auto hash_of = [&](ReadText id) { return hash(nodes_[id].before, added(nodes_[id])); };
        const auto same = [&](ReadText id) { return nodes_[id].before == read_text && added(nodes_[id]) == more; };
        const std::uint64_t wanted = hash(read_text, more);
        if (const auto known = index_.find(wanted, nodes_.size(), hash_of, same)) return *known;
        const std::size_t begin = text_.size();
        text_ += more;
        const ReadText id = nodes_.next();
        nodes_.push_back({read_text, static_cast<std::uint32_t>(more.size()), begin});
        index_.add(wanted);
        return id;
    }
    std::string text(ReadText read_text) const {
        std::vector<ReadText> pieces;
        for (; read_text > kIrrelevant; read_text = nodes_[read_text].before) pieces.push_back(read_text);
        std::string made;
        for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) made += added(nodes_[*piece]);
        return made;
    }
    std::size_t size() const { return text_.size(); }

private:
    struct Node {
        ReadText before;
        std::uint32_t size;
        std::size_t begin;  // of the piece in `text_`
    };
    std::string_view added(const Node& node) const { return std::string_view(text_).substr(node.begin, node.size); }

    DroppableIndex<ReadText>& index_;
    IdVector<ReadText, Node> nodes_{raw(kIrrelevant) + 1};  // the first three are the special texts
    std::string text_;
};

}  // namespace guideway
