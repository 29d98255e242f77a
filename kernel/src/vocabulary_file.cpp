// What building a vocabulary takes long for, as a block of words, so that another process need not build it again. The
// numbers are this machine's own; whoever keeps the block keeps its kind under the format's number and the order of bytes.
#include "guideway/error.h"
#include "guideway/flat.h"
#include "guideway/vocabulary.h"

namespace guideway {

std::vector<std::uint64_t> Vocabulary::file() const {
    FlatWriter made;
    made.put(trie_.block());
    made.put(subtrees_->file());
    made.put(smooth_->file());
    return made.take();
}

Vocabulary::Vocabulary(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
                       std::span<const std::uint64_t> file, std::shared_ptr<const void> owner, VocabularyLimits limits)
    : Vocabulary(Bare{}, std::move(tokens), std::move(eos), special, limits) {
    owner_ = std::move(owner);
    FlatReader reader(file);
    trie_ = Trie::over(reader.view<std::uint64_t>(), size());
    subtrees_ = std::make_unique<Subtrees>(trie_, reader.view<std::uint64_t>());
    smooth_ = std::make_unique<SmoothTokens>(reader.view<std::uint64_t>(), size());
    if (!reader.done()) throw Error(ErrorKind::argument, "a vocabulary with something behind it");
}

}  // namespace guideway
