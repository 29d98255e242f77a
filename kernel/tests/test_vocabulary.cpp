// Blocks of tokens, checksums, and damaged vocabulary files: they are rejected, or used without access out of bounds (checked by the
// sanitizers).
#include <random>

#include "check.h"
#include "guideway/base/checksum.h"
#include "guideway/base/error.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

using namespace guideway;

namespace {

using Ids = std::vector<std::uint32_t>;
using File = std::vector<std::uint64_t>;

std::shared_ptr<Vocabulary> read(const std::string& block, const std::shared_ptr<const File>& file) {
    return std::make_shared<Vocabulary>(TokenBlock(block), Ids{0}, Ids{}, *file, file);
}

void blocks() {
    const std::vector<std::string> tokens{"", "a", std::string(254, 'b'), std::string(255, 'c'), std::string(70'000, 'd'), ""};
    const std::string block = programs::block_of(tokens);
    const TokenBlock found(block);
    for (std::uint32_t id = 0; id < tokens.size(); ++id) CHECK(found.view()[id] == tokens[id]);
    CHECK(found.view().size() == tokens.size());
    for (std::size_t cut : {0u, 3u, 4u, 8u, 12u, 400u}) CHECK_THROWS(TokenBlock(std::string_view(block).substr(0, cut)), Error);
    CHECK_THROWS(TokenBlock(block + "x"), Error);
    CHECK_THROWS(TokenBlock(std::string(64, '\xff')), Error);
}

void checksums() {
    std::mt19937 random(1);
    std::vector<std::uint8_t> data(1000);
    for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
    std::uint64_t known = checksum(data, 3);
    for (std::size_t at = 0; at < data.size(); ++at) {
        data[at] ^= static_cast<std::uint8_t>(1u << random() % 8);
        CHECK(checksum(data, 3) != known);
        if (at + 64 < data.size()) {  // the same bit of the same lane, one step later
            auto twice = data;
            for (const std::size_t place : {at, at + 64}) twice[place] ^= 0x80;
            CHECK(checksum(twice, 3) != checksum(data, 3));
        }
        CHECK(checksum(std::span(data).first(at), 3) != known);
        known = checksum(data, 3);
        CHECK(checksum(data, 4) != known);
    }
}

void walk(const std::shared_ptr<const Vocabulary>& vocabulary) {
    for (const auto& program : {programs::tree(false, true), programs::letters(true)}) {
        Matcher matcher(Automaton::compile(vocabulary, program));
        std::vector<std::uint32_t> row(vocabulary->words());
        for (const char c : std::string("{\"name")) {
            matcher.fill_mask(row);
            const std::uint32_t token = 1 + static_cast<std::uint8_t>(c);
            if (!(row[token >> 5] >> (token & 31) & 1)) break;
            try {
                matcher.advance(token);
            } catch (const Error&) {
                break;  // a mask of a damaged trie may allow what the tokens' own bytes do not
            }
        }
    }
}

void damage() {
    const std::string block = programs::block_of(programs::tokens());
    const auto made = std::make_shared<Vocabulary>(TokenBlock(block), Ids{0}, Ids{});
    const auto whole = std::make_shared<const File>(made->file());
    CHECK(read(block, whole)->file() == *whole);
    walk(read(block, whole));
    std::mt19937 random(2);
    int refused = 0, taken = 0;
    for (int round = 0; round < 6000; ++round) {
        auto file = std::make_shared<File>(*whole);
        auto* bytes = reinterpret_cast<std::uint8_t*>(file->data());
        for (auto k = random() % 3 + 1; k > 0; --k) {
            const std::size_t at = random() % (file->size() * 8);
            if (random() % 2) bytes[at] = static_cast<std::uint8_t>(random());
            else bytes[at] = static_cast<std::uint8_t>(bytes[at] + (random() % 2 ? 1 : -1));
        }
        if (random() % 16 == 0) file->resize(random() % file->size());
        try {
            walk(read(block, file));
            ++taken;
        } catch (const Error& error) {
            CHECK(error.kind == ErrorKind::argument);
            ++refused;
        }
    }
    CHECK(refused > 1000 && taken > 100);
    auto longer = std::make_shared<File>(*whole);
    longer->push_back(0);
    CHECK_THROWS(read(block, longer), Error);
    std::vector<std::string> fewer = programs::tokens();
    fewer.pop_back();
    CHECK_THROWS(read(programs::block_of(fewer), whole), Error);
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    RUN(blocks());
    RUN(checksums());
    RUN(damage());
    return check::report();
}
