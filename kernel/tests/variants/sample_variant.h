// The sampler's own source, compiled in a separate namespace with the attribute of one variant.
#pragma once

#include "sample.cpp"
#include "variant.h"

namespace guideway {

std::int64_t drawn(std::span<const float> logits, std::span<const std::uint32_t> mask, const DrawSettings& given, double number) {
    Sampling how;
    how.temperature = given.temperature;
    how.top_p = given.top_p;
    how.min_p = given.min_p;
    how.tail_free = given.tail_free;
    how.typical_p = given.typical_p;
    how.top_a = given.top_a;
    how.top_k = given.top_k;
    const auto found = sample(logits, mask, how, {}, number, false);
    return found ? std::int64_t{found->token} : -1;
}

void logprobs(std::span<const float> logits, std::span<const std::uint32_t> mask, std::uint32_t token, double (&out)[3]) {
    const Shares found = shares(logits, mask, token);
    out[0] = found.logprob;
    out[1] = found.mask_logprob;
    out[2] = found.removed;
}

}  // namespace guideway
