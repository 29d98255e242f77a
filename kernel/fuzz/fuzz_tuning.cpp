// Masks over a vocabulary of about 9,000 tokens are the same whichever mechanisms of tuning.h are used, and from which
// thresholds on. Input: a mechanism that is off in one of the variants, a program, then a byte for each token that is taken.
#include <map>
#include <optional>

#include "expressions.h"
#include "fuzz.h"

namespace {

using guideway::Tuning;
using guideway::Vocabulary;

std::shared_ptr<const Vocabulary> vocabulary(const Tuning& tuning) {
    static const std::vector<std::string> tokens = programs::many_tokens();
    guideway::VocabularyLimits limits;
    limits.memo_bytes = 4 << 20;
    limits.store_bytes = 8 << 20;
    limits.max_states = 50'000;
    limits.max_work = 20'000'000;
    limits.tuning = tuning;
    return std::make_shared<Vocabulary>(guideway::TokenBlock(programs::block_of(tokens)), std::vector<std::uint32_t>{0},
                                        std::vector<std::uint32_t>{programs::kSpecial}, limits);
}

// The vocabularies are kept: their stores have results of earlier inputs.
std::vector<std::shared_ptr<const Vocabulary>> variants(std::uint8_t choice) {
    static const auto standard = vocabulary({}), plain = vocabulary(Tuning::off()), eager = vocabulary(Tuning::eager());
    static std::map<std::size_t, std::shared_ptr<const Vocabulary>> reduced;
    const std::size_t off = choice % std::size(guideway::kTuningSwitches);
    auto& without = reduced[off];
    if (!without) {
        Tuning tuning = Tuning::eager();
        tuning.*guideway::kTuningSwitches[off].member = false;
        without = vocabulary(tuning);
    }
    return {standard, plain, eager, without};
}

programs::Words program(const std::uint8_t* data, std::size_t size, std::size_t& at) {
    static const std::vector<programs::Words> known = [] {
        std::vector<programs::Words> made = programs::all();
        for (unsigned kind = 0; kind < programs::kCounted; ++kind) made.push_back(programs::counted(kind));
        return made;
    }();
    const std::uint8_t choice = data[at++];
    if (choice < 64) return known[choice % known.size()];
    programs::Writer writer;
    fuzz::Expressions w(writer);
    std::size_t end = 0;
    const std::uint32_t root = fuzz::expression(w, data + at, size - at, end);
    const std::uint32_t leaf = fuzz::spelled(writer, root, data + at, size - at, end).expr;
    at += end;
    writer.node({0, leaf});
    return writer.program(0);
}

struct Walk {
    std::optional<guideway::Matcher> matcher;
    bool refused = false;  // it accepts nothing
    bool limited = false;  // no longer compared
};

// Calls f; a limit ends the comparison of this walk.
template <class F>
void within_limits(Walk& walk, F&& f) {
    if (walk.limited || walk.refused) return;
    try {
        f();
    } catch (const guideway::Error& error) {
        fuzz::promise(error.kind == guideway::ErrorKind::limit || error.kind == guideway::ErrorKind::unsatisfiable, "errors are limits");
        (error.kind == guideway::ErrorKind::limit ? walk.limited : walk.refused) = true;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3 || size > 256) return 0;
    std::size_t at = 1;
    const programs::Words words = program(data, size, at);
    std::vector<Walk> walks;
    for (const auto& each : variants(data[0])) {
        Walk& walk = walks.emplace_back();
        within_limits(walk, [&] { walk.matcher.emplace(guideway::Automaton::compile(each, words)); });
    }
    std::vector<std::uint32_t> row, first;
    for (std::size_t step = 0; step < 5; ++step, ++at) {
        first.clear();
        std::optional<bool> refused;
        for (Walk& walk : walks) {
            if (walk.limited) continue;
            fuzz::promise(!refused || *refused == walk.refused, "all variants refuse the same programs");
            refused = walk.refused;
            if (walk.refused) continue;
            within_limits(walk, [&] {
                row.assign(walk.matcher->automaton().vocabulary().words(), 0);
                walk.matcher->fill_mask(row);
            });
            if (walk.limited) continue;
            if (first.empty()) first = row;
            fuzz::promise(row == first, "all variants give the same masks");
        }
        std::vector<std::uint32_t> legal;
        for (std::uint32_t word = 0; word < first.size(); ++word)
            for (std::uint32_t bits = first[word]; bits; bits &= bits - 1)
                legal.push_back(word * 32 + static_cast<std::uint32_t>(std::countr_zero(bits)));
        if (legal.empty()) return 0;
        const std::uint32_t wanted = at < size ? data[at] : 0u;
        const std::uint32_t token = legal[(wanted * 2654435761u >> 8) % legal.size()];
        for (Walk& walk : walks) within_limits(walk, [&] { walk.matcher->advance(token); });
        if (token == 0) return 0;
    }
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    using namespace std::string_literals;
    std::vector<std::string> seeds;
    for (char choice = 0; choice < 23; ++choice) seeds.push_back({choice, choice, 1, 2, 3, 4, 5});
    for (const std::string& expr :
         {"\x02\x1d\x33\x08\xff\x01"s, "\x03\x0c\x10\x06\x22\x0a\x0b\x0a\xff\x01"s, "\x44\x0c\x20\x08\xfe\xff\x01"s,
          "\x22\x0e\xfe\xff\x01"s, "\x03\xae\x10\x06\xff\x01"s, "\x03\x0b\x05\x0a\xff\x01"s})
        for (char choice = 0; choice < 21; choice = static_cast<char>(choice + 5))
            seeds.push_back(std::string{choice, '\x7f'} + expr + "\x01\x30\x55\x90");
    return seeds;
}
