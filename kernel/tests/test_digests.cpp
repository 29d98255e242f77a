// Digests of masks and of sampled tokens, which must be the same on every platform: `make kernel-portable` runs this test
// with several compilers, on other architectures and on another system. A change of these values is a change of results.
#include <cstdio>
#include <random>

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/logits/sample.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

using namespace guideway;

namespace {

// FNV-1a over 32-bit numbers; independent of the kernel's own checksum.
class Digest {
public:
    void add(std::uint32_t number) {
        for (unsigned shift = 0; shift < 32; shift += 8) state_ = (state_ ^ (number >> shift & 0xff)) * 0x100000001b3;
    }
    std::uint64_t value() const { return state_; }

private:
    std::uint64_t state_ = 0xcbf29ce484222325;
};

struct Digests {
    Digest masks, tokens;
    std::size_t steps = 0;
};

// Logits with equal values and large gaps, made by exact operations only.
std::vector<float> logits(std::mt19937& chance, std::size_t size) {
    std::vector<float> made(size);
    for (float& logit : made) {
        const int number = static_cast<int>(chance() % 4096) - 2048;  // one call per expression: operands have no order
        logit = static_cast<float>(number) / static_cast<float>(1u << chance() % 9);
    }
    return made;
}

std::vector<Sampling> settings() {
    std::vector<Sampling> made(7);
    made[1].temperature = 0.7;
    made[1].top_k = 20;
    made[2].top_p = 0.9;
    made[3].min_p = 0.05;
    made[3].temperature = 1.3;
    made[4].typical_p = 0.8;
    made[5].tail_free = 0.95;
    made[5].top_a = 0.1;
    made[6].top_n_sigma = 1.5;
    return made;
}

// Samples a text under the mask, token by token.
void walk(const std::shared_ptr<const Vocabulary>& vocabulary, const programs::Words& program, std::uint32_t seed, Digests& made) {
    const std::vector<Sampling> how = settings();
    std::mt19937 chance(seed);
    Matcher matcher(Automaton::compile(vocabulary, program));
    std::vector<std::uint32_t> row(vocabulary->words());
    for (std::size_t step = 0; step < 24 && !matcher.is_finished(); ++step) {
        matcher.fill_mask(row);
        for (const std::uint32_t word : row) made.masks.add(word);
        const std::vector<float> values = logits(chance, vocabulary->size());
        const double number = static_cast<double>(chance()) / 4294967296.0;
        const std::optional<Drawn> token = sample(values, row, how[(seed + step) % how.size()], {}, number, false);
        CHECK(token.has_value());
        if (!token) return;
        made.tokens.add(token->token);
        ++made.steps;
        matcher.advance(token->token);
        if (!matcher.is_finished()) made.masks.add(matcher.tokens_to_finish());
    }
}

Digests digests(const std::vector<std::string>& tokens) {
    const auto vocabulary = std::make_shared<Vocabulary>(TokenBlock(programs::block_of(tokens)), std::vector<std::uint32_t>{0},
                                                         std::vector<std::uint32_t>{programs::kSpecial});
    Digests made;
    std::uint32_t seed = 0;
    for (const programs::Words& program : programs::all()) walk(vocabulary, program, seed++, made);
    for (unsigned kind = 0; kind < programs::kCounted; ++kind) walk(vocabulary, programs::counted(kind), seed++, made);
    return made;
}

void equal(const char* name, const Digests& found, std::uint64_t masks, std::uint64_t tokens) {
    std::printf("%s: %zu steps, masks %016llx, tokens %016llx\n", name, found.steps, static_cast<unsigned long long>(found.masks.value()),
                static_cast<unsigned long long>(found.tokens.value()));
    CHECK(found.masks.value() == masks);
    CHECK(found.tokens.value() == tokens);
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    RUN(equal("small vocabulary", digests(programs::tokens()), 0x0aaf304ced8db6b3, 0xcf0fab9512996a84));
    RUN(equal("large vocabulary", digests(programs::many_tokens()), 0xadd3118739b6fd49, 0xeb896ccebfb0c950));
    return check::report();
}
