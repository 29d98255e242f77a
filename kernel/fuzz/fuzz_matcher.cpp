// Calls of matchers of valid programs, and their properties. Input: a program number, then two bytes for each call.
#include "../tests/programs.h"
#include "fuzz.h"

namespace {

std::vector<std::shared_ptr<const guideway::Automaton>> automata() {
    static const auto vocabulary = fuzz::vocabulary();
    std::vector<std::shared_ptr<const guideway::Automaton>> made;
    for (const auto& words : programs::all()) made.push_back(guideway::Automaton::compile(vocabulary, words));
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto made = automata();
    if (size < 1 || size > 1024) return 0;
    guideway::Matcher matcher(made[data[0] % made.size()]);
    try {
        fuzz::drive(matcher, data + 1, size - 1);
        fuzz::consistent(matcher);
    } catch (const guideway::Error&) {
        return 0;  // a limit
    }
    return 0;
}

// A call of `advance` for each byte of a text.
std::vector<std::string> fuzz_seeds() {
    std::vector<std::string> seeds;
    for (const std::string text : {"{\"name\":\"x\",\"kids\":[]}", "{ \"kids\" : [ {\"name\":\"\"} ], \"name\":\"y\"}", "abcc", "bbc",
                                   "{\"a\":\"b\",\"ab\":\"cc\"}", "[1.0,\"a\", 2e0]", "[1e-1,0.5]", "abb[cbab]ba", "ccababcabb", "[][[]]",
                                   "aab", "b]b", "\"abc\\n\xf0\x9f\x98\x80 abcc\"", "ab \xc3\xa9"})
        for (char program = 0; program < 19; ++program) {
            std::string calls(1, program);
            for (char c : text) calls += {'\x07', static_cast<char>(c + 1), '\x06', '\x10'};
            seeds.push_back(calls);
        }
    return seeds;
}
