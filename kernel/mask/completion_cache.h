// Cache of long shortest completions. The keys are configurations along them. A completion that reaches a key continues in
// the same way, so only the bytes before the key are computed and counted in tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/grammar/machine.h"

namespace guideway {

class CompletionCache {
public:
    static constexpr std::size_t kEvery = 16;          // bytes from one key to the next
    static constexpr std::size_t kShortest = 64;       // minimum length of a cached completion, in bytes
    static constexpr std::size_t kMaxBytes = 8 << 20;  // of all completions; when it is exceeded, all are dropped

    // The rest of a cached completion, and for each position the minimum number of tokens that spell the bytes from there on.
    struct Tail {
        const char* text = nullptr;
        const std::uint32_t* fewest = nullptr;  // one more than bytes
        std::size_t size = 0;
    };

    // The completion from these configurations on; `text` is null if none is cached.
    Tail find(const Configs& configs) const {
        const auto known = places_.empty() ? places_.end() : places_.find(configs);
        if (known == places_.end()) return {};
        const Kept& kept = kept_[known->second.first];
        const std::size_t at = known->second.second;
        return {kept.text.data() + at, kept.fewest.data() + at, kept.text.size() - at};
    }

    // `places`: the keys, each with the number of bytes before it. Invalidates all tails.
    void keep(std::string&& text, std::vector<std::uint32_t>&& fewest, std::vector<std::pair<std::size_t, Configs>>&& places) {
        std::size_t bytes = text.size() * 5;
        for (const auto& [at, configs] : places) bytes += 80 + configs.size() * sizeof(Config);
        if (bytes_ + bytes > kMaxBytes) {
            kept_.clear();
            places_.clear();
            bytes_ = 0;
        }
        if (bytes > kMaxBytes) return;
        bytes_ += bytes;
        const auto number = static_cast<std::uint32_t>(kept_.size());
        kept_.push_back({std::move(text), std::move(fewest)});
        for (auto& [at, configs] : places) places_.emplace(std::move(configs), std::pair{number, at});
    }

    std::size_t bytes() const { return bytes_; }

private:
    struct Kept {
        std::string text;
        std::vector<std::uint32_t> fewest;
    };
    std::vector<Kept> kept_;
    std::unordered_map<Configs, std::pair<std::uint32_t, std::size_t>, ConfigsHash> places_;
    std::size_t bytes_ = 0;
};

}  // namespace guideway
