// Shared code of the fuzz targets: a small vocabulary with low limits, and calls of a matcher from bytes. Errors of the
// kernel are allowed; a violated property aborts, like an error of a sanitizer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../tests/programs.h"
#include "guideway/base/error.h"
#include "guideway/matcher/matcher.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// Valid inputs to start from; libFuzzer starts from its corpus instead.
std::vector<std::string> fuzz_seeds();

namespace fuzz {

inline void promise(bool kept, const char* what) {
    if (kept) return;
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
}

inline std::shared_ptr<const guideway::Vocabulary> vocabulary() {
    std::vector<std::string> tokens{""};
    for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
    tokens.emplace_back(programs::kSpecialName);
    for (const char* text : {"{\"", "\":", "\",\"", "ab", "abc", "bcc", "}]", "\\u00", "\xc3\xa9", "\xa9\xe6"}) tokens.emplace_back(text);
    guideway::VocabularyLimits limits;
    limits.memo_bytes = 1 << 20;
    limits.store_bytes = 8 << 20;
    limits.max_states = 20'000;
    limits.max_work = 2'000'000;
    return std::make_shared<guideway::Vocabulary>(guideway::TokenBlock(programs::block_of(tokens)), std::vector<std::uint32_t>{0},
                                                  std::vector<std::uint32_t>{programs::kSpecial}, limits);
}

inline std::vector<std::uint32_t> mask(const guideway::Matcher& matcher) {
    std::vector<std::uint32_t> row(matcher.automaton().vocabulary().words());
    matcher.fill_mask(row);
    return row;
}

inline bool takes(guideway::Matcher& matcher, std::int64_t token) {
    try {
        matcher.advance(token);
    } catch (const guideway::Error& error) {
        if (error.kind == guideway::ErrorKind::limit) throw;
        return false;
    }
    return true;
}

// Checks that a bit is set exactly if its token is accepted, that rollback restores the matcher, and that the text can be completed.
inline void consistent(guideway::Matcher& matcher) {
    const auto before = mask(matcher);
    const std::size_t position = matcher.position();
    bool any = false;
    for (std::uint32_t token = 0; token < matcher.automaton().vocabulary().size(); ++token) {
        const bool bit = before[token / 32] >> token % 32 & 1, taken = takes(matcher, token);
        any |= bit;
        if (taken) matcher.rollback(1);
        if (!matcher.is_finished()) promise(bit == taken, "a bit is set exactly when its token is taken");
    }
    promise(any, "something is always legal");
    promise(matcher.position() == position && mask(matcher) == before, "what is given back leaves no trace");
    if (matcher.is_finished()) return;
    guideway::Matcher other(matcher);
    const std::string rest = other.completion(), special = programs::kSpecialName;  // the special token is in `rest` as its name
    if (rest.size() > 2000) return;  // with many counters, each byte steps thousands of configurations
    for (std::size_t i = 0; i < rest.size(); ++i)
        if (rest.compare(i, special.size(), special) == 0 && takes(other, programs::kSpecial)) i += special.size() - 1;
        else promise(takes(other, 1 + static_cast<std::uint8_t>(rest[i])), "a completion is taken");
    promise(other.is_accepting(), "a completion completes");
    promise(mask(matcher) == before, "a copy moves alone");
}

// Two bytes make a call.
inline void drive(guideway::Matcher& matcher, const std::uint8_t* data, std::size_t size) {
    std::vector<std::uint32_t> row(matcher.automaton().vocabulary().words());
    for (std::size_t i = 0; i + 1 < size; i += 2) {
        const std::uint32_t operand = data[i + 1];
        try {
            switch (data[i] % 8) {
                case 0: matcher.fill_mask(row); break;
                case 1:
                    if (matcher.fill_mask_within(row, operand))
                        promise(row != std::vector<std::uint32_t>(row.size()), "a mask that fits has bits");
                    break;
                case 2: matcher.rollback(operand % 4); break;
                case 3: matcher = guideway::Matcher(matcher); break;
                case 4: matcher.forced_tokens(); break;
                case 5: matcher.tokens_to_finish(); break;
                case 6:
                    if (operand % 16 == 0) consistent(matcher);
                    break;
                default: matcher.advance(operand + data[i] / 8 % 2 * 11); break;  // including 257, the special token
            }
        } catch (const guideway::Error&) {
            continue;  // an error leaves the matcher as it was
        }
    }
}

inline std::string bytes_of(const std::vector<std::uint32_t>& words) {
    std::string made(words.size() * 4, '\0');
    std::memcpy(made.data(), words.data(), made.size());
    return made;
}

}  // namespace fuzz
