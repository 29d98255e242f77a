// Draws compared with a simple reference that sorts all tokens, for many kinds of logits and masks.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "check.h"
#include "guideway/base/error.h"
#include "guideway/logits/sample.h"

using namespace guideway;

namespace {

using Floats = std::vector<float>;
using Words = std::vector<std::uint32_t>;

bool allows(const Words& mask, std::size_t i) { return mask.empty() || (i / 32 < mask.size() && (mask[i / 32] >> (i % 32) & 1)); }

// Temperature, top-k, top-p and min-p by definition; kNone if no token is allowed. `near`: the distance of the draw to the
// next token, where rounding may decide.
constexpr std::uint32_t kNone = 0xffffffff;
std::uint32_t plain(const Floats& logits, const Words& mask, const Sampling& how, double number, double& near) {
    std::vector<std::pair<double, std::uint32_t>> left;
    for (std::size_t i = 0; i < logits.size(); ++i)
        if (allows(mask, i) && std::isfinite(logits[i])) left.push_back({static_cast<double>(logits[i]), static_cast<std::uint32_t>(i)});
    if (left.empty()) return kNone;
    std::sort(left.begin(), left.end(),
              [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
    if (how.temperature == 0) return left.front().second;
    const double top = left.front().first;
    std::vector<double> weights;
    for (const auto& [logit, id] : left) weights.push_back(std::exp((logit - top) / how.temperature));
    std::size_t count = how.top_k ? std::min<std::size_t>(how.top_k, left.size()) : left.size();
    const double all = std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
    near = 1;
    if (how.top_p < 1) {
        double reached = 0;
        for (std::size_t i = 0; i < count; ++i) {
            reached += weights[i];
            near = std::min(near, std::abs(reached / all - how.top_p));
            if (reached >= how.top_p * all) count = i + 1;
        }
    }
    if (how.min_p > 0)
        for (std::size_t i = 0; i < count; ++i) {
            near = std::min(near, std::abs(weights[i] - how.min_p) / how.min_p);
            if (weights[i] < how.min_p) count = i;
        }
    left.resize(std::max<std::size_t>(count, 1));
    std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    double sum = 0, reached = 0;
    for (const auto& [logit, id] : left) sum += std::exp((logit - top) / how.temperature);
    std::uint32_t found = kNone;
    for (const auto& [logit, id] : left) {
        reached += std::exp((logit - top) / how.temperature);
        near = std::min(near, std::abs(reached / sum - number));
        if (found == kNone && reached > number * sum) found = id;
    }
    return found == kNone ? left.back().second : found;
}

void draws() {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> unit(0, 1);
    int compared = 0;
    for (int round = 0; round < 3000; ++round) {
        const std::size_t size = round % 50 == 0 ? 9000 + random() % 3000 : 1 + random() % 300;
        std::normal_distribution<float> normal(0, round % 3 ? 3.0f : 0.1f);
        Floats logits(size);
        for (float& logit : logits) logit = random() % 8 ? normal(random) : -std::numeric_limits<float>::infinity();
        if (round % 5 == 0)
            for (float& logit : logits) logit = std::round(logit);
        Words mask;
        if (round % 2) {
            mask.resize((size + 31) / 32 - (round % 11 == 0 && size > 32));
            for (auto& word : mask) word = random() % 3 ? static_cast<std::uint32_t>(random()) : ~0u;
        }
        Sampling how;
        how.temperature = round % 7 == 0 ? 0 : 0.2 + unit(random);
        if (random() % 2) how.top_k = static_cast<std::uint32_t>(1 + random() % 80);
        if (random() % 2) how.top_p = 0.01 + 0.98 * unit(random);
        if (random() % 3 == 0) how.min_p = unit(random) * 0.9;
        const double number = unit(random);
        double near = 1;
        const std::uint32_t expected = plain(logits, mask, how, number, near);
        const auto found = sample(logits, mask, how, {}, number, false);
        if (expected == kNone) CHECK(!found);
        else if (near > 1e-9) {
            ++compared;
            CHECK(found && found->token == expected);
        }
    }
    CHECK(compared > 2000);
}

void changes() {
    Floats logits(100, 0.0f);
    logits[40] = 5;
    Sampling how;
    how.temperature = 0;
    how.repetition_penalty = 10;
    const std::vector<std::uint32_t> ids{40, 7, 500}, counts{1, 2, 1};
    CHECK(sample(logits, {}, how, {ids, counts}, 0, false)->token == 40u);  // 0.5 is still the largest
    how.presence_penalty = 1;
    CHECK(sample(logits, {}, how, {ids, counts}, 0, false)->token == 0u);
    how.bias_ids = {0, 1, 99, 100};
    how.biases = {-1.0 / 0.0, -1, 2, 9};
    CHECK(sample(logits, {}, how, {ids, counts}, 0, false)->token == 99u);
    const Words none(4, 0), one{0, 0, 0, 1};
    CHECK(!sample(logits, none, how, {ids, counts}, 0, false));
    CHECK(sample(logits, one, how, {ids, counts}, 0, false)->token == 96u);
    logits[3] = std::nanf("");
    CHECK(!sample(logits, {}, how, {ids, counts}, 0, false));
    CHECK(!sample({}, {}, how, {}, 0, false));
}

// If logits change by less than the gap, the same token is drawn. Some larger change leads to another one.
void gaps() {
    std::mt19937 random(6);
    std::uniform_real_distribution<double> unit(0, 1);
    int close = 0;
    for (int round = 0; round < 4000; ++round) {
        const std::size_t size = 2 + random() % 1200;
        std::normal_distribution<float> normal(0, 2);
        Floats logits(size);
        for (float& logit : logits) logit = normal(random);
        Words mask;
        if (round % 2) {
            mask.resize((size + 31) / 32);
            for (auto& word : mask) word = static_cast<std::uint32_t>(random());
            mask[0] |= 3;
        }
        Sampling how;
        how.temperature = round % 3 ? 0.3 + unit(random) : 0;
        if (round % 6 == 3) {
            how.bias_ids = {1};
            how.biases = {2};
        }
        const double number = unit(random);
        const auto found = sample(logits, mask, how, {}, number, false);
        CHECK(found && found->gap >= 0);
        if (!found || found->gap > 0.05 || found->gap < 1e-5) continue;
        ++close;
        const auto changed = [&](double by, std::size_t from) {  // the logits from an id on, or only that of the drawn token
            Floats other = logits;
            if (how.temperature == 0) other[found->token] -= static_cast<float>(by);
            else
                for (std::size_t i = from; i < size; ++i) other[i] += static_cast<float>(by);
            return sample(other, mask, how, {}, number, false)->token != found->token;
        };
        const double gap = found->gap;
        const std::size_t at = found->token;
        CHECK(!changed(0.9 * gap, at) && !changed(-0.9 * gap, at) && !changed(0.9 * gap, at + 1) && !changed(-0.9 * gap, at + 1));
        CHECK(changed(1.1 * gap, at) || changed(-1.1 * gap, at) || changed(1.1 * gap, at + 1) || changed(-1.1 * gap, at + 1));
    }
    CHECK(close > 500);
}

void parts() {
    const Floats logits{1, 2, 3};
    const Words mask{0b101};
    const double all = std::exp(1) + std::exp(2) + std::exp(3), legal = std::exp(1) + std::exp(3);
    const Shares found = shares(logits, mask, 2);
    CHECK(std::abs(found.logprob - (3 - std::log(all))) < 1e-12);
    CHECK(std::abs(found.mask_logprob - (3 - std::log(legal))) < 1e-12);
    CHECK(std::abs(found.removed - std::exp(2) / all) < 1e-12);
    CHECK_THROWS(shares(logits, mask, 3), Error);
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    RUN(draws());
    RUN(changes());
    RUN(gaps());
    RUN(parts());
    return check::report();
}
