// One variant of the sampler, as plain functions.
#pragma once

#include <cstdint>
#include <span>

struct DrawSettings {
    double temperature, top_p, min_p, tail_free, typical_p, top_a;
    std::uint32_t top_k;
};

struct SampleVariant {
    // The token drawn; -1: none.
    std::int64_t (*drawn)(std::span<const float>, std::span<const std::uint32_t>, const DrawSettings&, double);
    // Two log-probabilities and the removed probability.
    void (*logprobs)(std::span<const float>, std::span<const std::uint32_t>, std::uint32_t, double (&)[3]);
};

SampleVariant sample_plain();
SampleVariant sample_v3();
SampleVariant sample_v4();
