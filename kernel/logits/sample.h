// A token drawn from logits on the CPU: biases and penalties, temperature, the stages that cut, and the draw, over the
// allowed tokens only. What each stage means, and their order, is src/guideway/sampling/; this gives the same token but
// for rounding in the last place.
//
// Nothing is sorted where it can be left out: where a stage keeps the best, tokens are counted (or weighed) by slices of
// their logits first, and only the slice that the edge falls into is put in order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace guideway {

struct Sampling {            // with these values every stage is off
    double temperature = 1;  // 0: the most probable token
    double repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
    double top_n_sigma = 0, tail_free = 1, typical_p = 1, top_a = 0, top_p = 1, min_p = 0;
    double xtc_threshold = 1;
    std::uint32_t top_k = 0;
    std::vector<std::uint32_t> bias_ids;
    std::vector<double> biases;
};

struct Seen {  // distinct tokens that came before, and how often
    std::span<const std::uint32_t> ids, counts;
};

struct Shares {
    double logprob;       // of the token, under the model
    double mask_logprob;  // of the token, among the allowed ones
    double removed;       // the probability of all that is not allowed
};

struct Drawn {
    std::uint32_t token;
    // How much the difference of two logits (or of the logits before and after an edge of the draw) must change, to first
    // order, before another token is drawn from the tokens that the stages keep. Greedy draws with biases or penalties
    // report at most 1.
    double gap;
};

// An empty mask allows all; one that is too short allows nothing beyond it. `number` in [0, 1) decides the draw;
// `exclude_top`: whether this draw leaves out the top choices (XTC). Nothing where no token is left, or a logit is NaN
// or +inf: the caller looks for the reason.
std::optional<Drawn> sample(std::span<const float> logits, std::span<const std::uint32_t> mask, const Sampling& how, Seen seen,
                            double number, bool exclude_top);

// Throws Error(argument) for a token that is out of range.
Shares shares(std::span<const float> logits, std::span<const std::uint32_t> mask, std::uint32_t token);

}  // namespace guideway
