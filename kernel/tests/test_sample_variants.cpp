// Every SIMD variant of the sampler that this CPU can run draws equal tokens for equal seeds, and its sums have equal bits.
#include <bit>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "guideway/logits/sample.h"
#include "variants/variant.h"

namespace {

using Words = std::vector<std::uint32_t>;

// The variant that this machine selects.
std::int64_t picked(std::span<const float> logits, std::span<const std::uint32_t> mask, const DrawSettings& given, double number) {
    guideway::Sampling how;
    how.temperature = given.temperature;
    how.top_p = given.top_p;
    how.min_p = given.min_p;
    how.tail_free = given.tail_free;
    how.typical_p = given.typical_p;
    how.top_a = given.top_a;
    how.top_k = given.top_k;
    const auto drawn = guideway::sample(logits, mask, how, {}, number, false);
    return drawn ? std::int64_t{drawn->token} : -1;
}

void picked_logprobs(std::span<const float> logits, std::span<const std::uint32_t> mask, std::uint32_t token, double (&out)[3]) {
    const guideway::Shares found = guideway::shares(logits, mask, token);
    out[0] = found.logprob;
    out[1] = found.mask_logprob;
    out[2] = found.removed;
}

std::vector<SampleVariant> variants() {
    std::vector<SampleVariant> made{sample_plain(), {picked, picked_logprobs}};
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) made.push_back(sample_v3());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        made.push_back(sample_v4());
#endif
    return made;
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    const auto all = variants();
    std::printf("%zu variants\n", all.size());
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal(0, 4);
    std::uniform_real_distribution<double> uniform(0, 1);
    const DrawSettings settings[] = {{1, 1, 0, 1, 1, 0, 0},      {0.7, 0.9, 0, 1, 1, 0, 0}, {1.3, 1, 0.02, 1, 1, 0, 50},
                                     {0.9, 1, 0, 0.95, 1, 0, 0}, {1.1, 1, 0, 1, 0.9, 0, 0}, {1, 1, 0, 1, 1, 0.1, 0}};
    for (const std::size_t size : {37u, 1000u, 32'000u}) {
        std::vector<float> logits(size);
        Words mask((size + 31) / 32);
        for (int round = 0; round < 20; ++round) {
            for (float& logit : logits) logit = normal(random);
            for (std::uint32_t& word : mask) word = static_cast<std::uint32_t>(random());
            const std::span<const std::uint32_t> masks[] = {{}, mask};
            for (const auto allowed : masks) {
                double first[3], other[3];
                all[0].logprobs(logits, allowed, static_cast<std::uint32_t>(random() % size), first);
                const auto token = static_cast<std::uint32_t>(random() % size);
                all[0].logprobs(logits, allowed, token, first);
                for (const SampleVariant& one : all) {
                    one.logprobs(logits, allowed, token, other);
                    for (int i = 0; i < 3; ++i) CHECK(std::bit_cast<std::uint64_t>(first[i]) == std::bit_cast<std::uint64_t>(other[i]));
                }
                for (const DrawSettings& how : settings) {
                    const double number = uniform(random);
                    const std::int64_t expected = all[0].drawn(logits, allowed, how, number);
                    for (const SampleVariant& one : all) CHECK(one.drawn(logits, allowed, how, number) == expected);
                }
            }
        }
    }
    return check::report();
}
