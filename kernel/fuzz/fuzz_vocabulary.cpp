// Vocabularies from blocks of bytes, and from damaged files: they must be rejected, or used without an access out of bounds. Input: a
// byte that selects the case, then the bytes. With a damaged file, masks may be wrong.
#include "../tests/programs.h"
#include "fuzz.h"

namespace {

using guideway::TokenBlock;
using guideway::Vocabulary;
using File = std::vector<std::uint64_t>;

constexpr std::uint8_t kFile = 0, kBlock = 1;

const std::string& block() {
    static const std::string made = programs::block_of(programs::tokens());
    return made;
}

guideway::VocabularyLimits limits() {
    guideway::VocabularyLimits made;
    made.memo_bytes = 1 << 20;
    made.max_states = 20'000;
    return made;
}

// Computes masks, each after a token that the last one allows.
void walk(const std::shared_ptr<const Vocabulary>& vocabulary, bool whole) {
    for (const auto& program : {programs::tree(false, true), programs::letters(true)}) {
        guideway::Matcher matcher(guideway::Automaton::compile(vocabulary, program));
        for (std::uint32_t turn = 0; turn < 4 && !matcher.is_finished(); ++turn) {
            const auto row = fuzz::mask(matcher);
            std::uint32_t token = turn * 7919 % vocabulary->size(), tried = 0;
            while (tried < vocabulary->size() && !(row[token / 32] >> token % 32 & 1)) ++tried, token = (token + 1) % vocabulary->size();
            if (tried == vocabulary->size()) break;
            const bool taken = fuzz::takes(matcher, token);
            if (whole) fuzz::promise(taken, "a bit is set exactly when its token is taken");
            if (!taken) break;
        }
    }
}

void read_file(const std::uint8_t* data, std::size_t size) {
    auto file = std::make_shared<File>(size / 8);
    if (!file->empty()) std::memcpy(file->data(), data, file->size() * 8);
    walk(std::make_shared<Vocabulary>(TokenBlock(block()), std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{}, *file, file,
                                      limits()),
         false);
}

// Arbitrary tokens: tables that are built and tables that are read must be equal.
void read_block(const std::string& bytes) {
    const TokenBlock tokens(bytes);
    if (tokens.view().size() == 0 || tokens.view().size() > 500) return;
    const auto made =
        std::make_shared<Vocabulary>(TokenBlock(bytes), std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{}, limits());
    const auto file = std::make_shared<const File>(made->file());
    const auto again =
        std::make_shared<Vocabulary>(TokenBlock(bytes), std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{}, *file, file, limits());
    fuzz::promise(again->file() == *file, "a vocabulary that was read is the one that was written");
    walk(made, true);
    walk(again, true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1 || size > 1 << 20) return 0;
    try {
        if (data[0] % 2 == kFile) read_file(data + 1, size - 1);
        else read_block({reinterpret_cast<const char*>(data + 1), size - 1});
    } catch (const guideway::Error&) {
        return 0;
    }
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    const Vocabulary made(TokenBlock(block()), std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{});
    const File file = made.file();
    std::string whole(1, static_cast<char>(kFile));
    whole.append(reinterpret_cast<const char*>(file.data()), file.size() * 8);
    std::vector<std::string> seeds{whole};
    for (const std::vector<std::string>& tokens : {programs::tokens(),
                                                   {"", "a", "b", "c", "\"", "{\"name\":", "\xff", "\xe6\x97", ""},
                                                   {"", "{", "{", std::string(300, 'a'), "ab", "abc", "\""}})
        seeds.push_back(static_cast<char>(kBlock) + programs::block_of(tokens));
    return seeds;
}
