// The tables that take long to build, as a block of words, so that another process need not build them again. Numbers have
// the byte order of the machine; callers store the block with its format version and byte order.
#include "guideway/base/error.h"
#include "guideway/base/flat_file.h"
#include "guideway/vocabulary/token_table.h"

namespace guideway {

std::vector<std::uint64_t> TokenTable::file() const {
    FlatWriter made;
    made.put(trie_.block());
    made.put(subtrees_->file());
    made.put(plain_tokens_->file());
    return made.take();
}

TokenTable::TokenTable(TokenBlock tokens, std::vector<std::uint32_t> eos, const std::vector<std::uint32_t>& special,
                       std::span<const std::uint64_t> file, std::shared_ptr<const void> owner)
    : TokenTable(Bare{}, std::move(tokens), std::move(eos), special) {
    owner_ = std::move(owner);
    FlatReader reader(file);
    trie_ = TokenTrie::over(reader.view<std::uint64_t>(), size());
    subtrees_ = std::make_unique<SubtreeAlphabets>(trie_, reader.view<std::uint64_t>());
    plain_tokens_ = std::make_unique<PlainTokens>(reader.view<std::uint64_t>(), size());
    if (!reader.done()) throw Error(ErrorKind::argument, "a vocabulary file of a wrong size");
}

}  // namespace guideway
