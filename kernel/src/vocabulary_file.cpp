// A vocabulary as a block of words, so that another process need not build its tries again. The numbers are this
// machine's own; whoever keeps the block keeps its kind under the format's number and the order of bytes.
#include <algorithm>

#include "guideway/error.h"
#include "guideway/flat.h"
#include "guideway/vocabulary.h"

namespace guideway {

std::vector<std::uint64_t> Vocabulary::file() const {
    FlatWriter made;
    const std::uint32_t facts[2] = {longest_, spells_every_byte_ ? 1u : 0u};
    made.put(facts, 2);
    made.put(eos_);
    made.put(starts_);
    made.put(text_);
    made.put(trie_.block());
    made.put(subtrees_->file());
    return made.take();
}

Vocabulary::Vocabulary(std::span<const std::uint64_t> file, std::shared_ptr<const void> owner, VocabularyLimits limits)
    : limits_(limits), owner_(std::move(owner)) {
    FlatReader reader(file);
    const auto facts = reader.view<std::uint32_t>();
    reader.take(eos_);
    starts_ = reader.view<std::uint32_t>();
    text_ = reader.view<char>();
    bool good = facts.size() == 2 && !starts_.empty() && starts_.size() <= 0x10000000 && starts_[0] == 0 && starts_.back() == text_.size();
    good = good && std::is_sorted(starts_.begin(), starts_.end()) && std::is_sorted(eos_.begin(), eos_.end());
    good = good && (eos_.empty() || eos_.back() < size());
    if (!good) throw Error(ErrorKind::argument, "a vocabulary that points out of place");
    longest_ = facts[0];
    spells_every_byte_ = facts[1] != 0;
    trie_ = Trie::over(reader.view<std::uint64_t>(), size());
    subtrees_ = std::make_unique<Subtrees>(trie_, reader.view<std::uint64_t>());
    if (!reader.done()) throw Error(ErrorKind::argument, "a vocabulary with something behind it");
}

}  // namespace guideway
