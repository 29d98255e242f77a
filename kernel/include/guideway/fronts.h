// The fronts of an automaton: sets of configurations that its matchers have come to, each kept once, and where tokens
// lead from one to another. So what a matcher has met before is one look-up.
//
// Fronts only grow, and stay where they are while the automaton lives; a new automaton takes its place in time
// (compiled.h). Tokens are noted in a table that forgets: a newer one takes the place of an older. All under the store's
// lock; the configurations of a front may be read without it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "guideway/blocks.h"
#include "guideway/id_table.h"
#include "guideway/machine.h"
#include "guideway/pieces.h"

namespace guideway {

struct Front {
    const Config* first = nullptr;
    std::uint32_t count = 0, id = 0;
    std::span<const Config> configs() const { return {first, count}; }
};

class Fronts {
public:
    // The front of these configurations, which are in order and different.
    Front keep(std::span<const Config> configs) {
        std::uint64_t hash = configs.size();
        for (const Config& c : configs) hash = mix(hash, ConfigHash{}(c));
        const std::uint32_t known = ids_.find(hash, [&](std::uint32_t id) { return std::ranges::equal(fronts_[id].configs(), configs); });
        if (known != IdTable::kMissing) return fronts_[known];
        if (pieces_.empty() || pieces_.back().size() - used_ < configs.size()) {
            pieces_.emplace_back(std::max(configs.size(), pieces_.empty() ? kFewest : std::min(2 * pieces_.back().size(), kMost)));
            used_ = 0;
        }
        Config* const first = pieces_.back().data() + used_;
        std::copy(configs.begin(), configs.end(), first);
        used_ += configs.size();
        learned_ += configs.size();
        const auto id = static_cast<std::uint32_t>(fronts_.size());
        fronts_.push_back({first, static_cast<std::uint32_t>(configs.size()), id});
        ids_.add(hash, id);
        return fronts_[id];
    }

    // Where the token led from a front, if that is still noted; null.
    const Front* behind(std::uint32_t front, std::uint32_t token) const {
        if (steps_.empty()) return nullptr;
        const Step& step = steps_[slot(front, token)];
        return step.front == front && step.token == token ? &fronts_[step.to] : nullptr;
    }
    void note(std::uint32_t front, std::uint32_t token, std::uint32_t to) {
        if (noted_ == steps_.size() && noted_ < kMostSteps) grow();
        ++noted_;
        steps_[slot(front, token)] = {front, token, to};
    }
    // Configurations in all of them.
    std::size_t learned() const { return learned_; }

private:
    static constexpr std::size_t kFewest = 16, kMost = 1024;  // configurations in a piece
    static constexpr std::size_t kFewestSteps = 32, kMostSteps = std::size_t{1} << 14;  // 196 KB at most
    struct Step {
        std::uint32_t front = IdTable::kMissing, token = 0, to = 0;
    };

    std::size_t slot(std::uint32_t front, std::uint32_t token) const {
        return mix(std::uint64_t{front} << 32 | token, 0) >> 20 & (steps_.size() - 1);
    }
    void grow() {
        const PieceVector<Step> before = std::exchange(steps_, PieceVector<Step>(steps_.empty() ? kFewestSteps : 2 * steps_.size()));
        for (const Step& step : before)
            if (step.front != IdTable::kMissing) steps_[slot(step.front, step.token)] = step;
    }

    std::vector<Piece<Config>> pieces_;
    std::size_t used_ = 0, noted_ = 0, learned_ = 0;  // used_: of the last piece
    Blocks<Front, 5> fronts_;
    IdTable ids_;
    PieceVector<Step> steps_;  // by a hash of front and token
};

}  // namespace guideway
