// Draws a token from logits on the CPU: biases and penalties, temperature, truncation stages, and the draw, over the allowed
// tokens only. src/guideway/sampling/ defines each stage and their order; this draws the same token, except for rounding in the
// last place.
//
// Full sorts are avoided: a stage that keeps the best tokens first sums tokens (or their weights) in slices of their logits, and
// sorts only the slice that contains the threshold.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace guideway {

struct Sampling {            // with these values all stages are off
    double temperature = 1;  // 0: the most probable token
    double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
    double top_n_sigma = 0, tail_free = 1, typical_p = 1, top_a = 0, top_p = 1, min_p = 0;
    double xtc_threshold = 1;
    std::uint32_t top_k = 0;
    std::vector<std::uint32_t> bias_ids;
    std::vector<double> biases;
};

struct Seen {  // distinct earlier tokens, and their counts
    std::span<const std::uint32_t> ids, counts;
};

struct Shares {
    double logprob;       // of the token, under the model
    double mask_logprob;  // of the token, among the allowed ones
    double removed;       // the total probability of tokens that are not allowed
};

struct Drawn {
    std::uint32_t token;
    // How much the difference of two logits (or of the logits before and after an edge of the draw) must change, to first
    // order, before another token is drawn from the tokens that the stages keep. Greedy draws with biases or penalties
    // report at most 1.
    double gap;
};

// An empty mask allows all tokens; one that is too short allows no others. `number` in [0, 1) decides the draw;
// `exclude_top`: whether this draw excludes the top choices (XTC). Returns no value if no token is left, or a logit is NaN or
// +inf: the caller finds the reason.
std::optional<Drawn> sample(std::span<const float> logits, std::span<const std::uint32_t> mask, const Sampling& how, Seen seen,
                            double number, bool exclude_top);

// Throws Error(argument) for a token that is out of range.
Shares shares(std::span<const float> logits, std::span<const std::uint32_t> mask, std::uint32_t token);

}  // namespace guideway
