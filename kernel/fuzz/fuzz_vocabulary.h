// What the fuzz targets share: a small vocabulary under tight limits, and calls of a matcher read from bytes.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "guideway/error.h"
#include "guideway/matcher.h"

namespace fuzz {

inline std::shared_ptr<const guideway::Vocabulary> vocabulary() {
    std::vector<std::string> tokens{""};
    for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
    for (const char* text : {"{\"", "\":", "\",\"", "ab", "}]", "\\u00"}) tokens.emplace_back(text);
    guideway::VocabularyLimits limits;
    limits.memo_bytes = 1 << 20;
    limits.store_bytes = 32 << 20;
    limits.max_states = 20'000;
    return std::make_shared<guideway::Vocabulary>(tokens, std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{}, limits);
}

inline void call(guideway::Matcher& matcher, const std::uint8_t* data, std::size_t size) {
    std::vector<std::uint32_t> row(matcher.automaton().vocabulary().words());
    for (std::size_t i = 0; i + 1 < size; i += 2) {
        const std::uint32_t operand = data[i + 1];
        try {
            switch (data[i] % 8) {
                case 0: matcher.fill_mask(row); break;
                case 1: matcher.fill_mask_within(row, operand); break;
                case 2: matcher.rollback(operand % 4); break;
                case 3: matcher = guideway::Matcher(matcher); break;
                case 4: matcher.forced_tokens(); break;
                case 5: matcher.tokens_to_finish(); break;
                default: matcher.advance(operand + data[i] / 8 % 2 * 200); break;
            }
        } catch (const guideway::Error&) {
            continue;  // an error leaves the matcher as it was
        }
    }
}

}  // namespace fuzz
