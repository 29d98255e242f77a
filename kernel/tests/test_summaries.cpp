// Masks of recursive grammars: results of one depth are used at other depths; special tokens.
#include "check.h"
#include "guideway/base/error.h"
#include "guideway/matcher/matcher.h"
#include "programs.h"

using namespace guideway;

namespace {

using Row = std::vector<std::uint32_t>;

std::shared_ptr<const Vocabulary> vocabulary(std::size_t memo_bytes) {
    VocabularyLimits limits;
    limits.memo_bytes = memo_bytes;
    return std::make_shared<Vocabulary>(TokenBlock(programs::block_of(programs::tokens())), std::vector<std::uint32_t>{0},
                                        std::vector<std::uint32_t>{programs::kSpecial}, limits);
}

bool takes(const Matcher& matcher, std::uint32_t token) {
    Matcher copy = matcher;
    try {
        copy.advance(token);
    } catch (const Error&) {
        return false;
    }
    return true;
}

// A mask has exactly the tokens that are accepted, with large and small caches.
void compare(const Matcher& matcher, const Matcher& forgetful) {
    Row row(matcher.automaton().vocabulary().words()), other(row.size());
    matcher.fill_mask(row);
    forgetful.fill_mask(other);
    CHECK(row == other);
    for (std::uint32_t t = 0; t < matcher.automaton().vocabulary().size(); ++t) CHECK(takes(matcher, t) == (row[t >> 5] >> (t & 31) & 1));
}

std::uint32_t id_of(char c) { return 1u + static_cast<std::uint8_t>(c); }

void nested(const programs::Words& program, const std::vector<std::uint32_t>& round, const std::vector<std::uint32_t>& end, int depths) {
    Matcher matcher(Automaton::compile(vocabulary(64 << 20), program)), forgetful(Automaton::compile(vocabulary(0), program));
    for (int depth = 0; depth < depths; ++depth) {
        compare(matcher, forgetful);
        for (std::uint32_t t : round) {
            matcher.advance(t);
            forgetful.advance(t);
        }
    }
    for (std::uint32_t t : end) {
        compare(matcher, forgetful);
        matcher.advance(t);
        forgetful.advance(t);
    }
    compare(matcher, forgetful);
    matcher.rollback(end.size());  // to the deepest position
    Row row(matcher.automaton().vocabulary().words()), other(row.size());
    matcher.fill_mask(row);
    forgetful.rollback(end.size());
    forgetful.fill_mask(other);
    CHECK(row == other);
}

void special_tokens() {
    const auto automaton = Automaton::compile(vocabulary(64 << 20), programs::special(0));
    Matcher matcher(automaton);
    for (const char c : std::string("<|a|>")) CHECK(!takes(matcher, id_of(c)) || c == 'a');  // the name as text is not the special token
    matcher.advance(id_of('a'));
    matcher.advance(programs::kSpecial);
    CHECK(takes(matcher, programs::kSpecial));
    CHECK(takes(matcher, id_of('b')));
    CHECK(!takes(matcher, id_of('c')));
    matcher.advance(programs::kSpecial);
    CHECK(!takes(matcher, programs::kSpecial));
    CHECK(matcher.is_accepting());

    Matcher text(Automaton::compile(vocabulary(64 << 20), programs::special(2)));  // no token has the name
    CHECK(text.forced_bytes() == "<|none|>");
    CHECK(!takes(text, programs::kSpecial));

    const auto bare = std::make_shared<Vocabulary>(TokenBlock(programs::block_of(programs::tokens())), std::vector<std::uint32_t>{0},
                                                   std::vector<std::uint32_t>{});
    bool refused = false;
    try {
        Automaton::compile(bare, programs::special(1));  // an id that is not special
    } catch (const Error&) {
        refused = true;
    }
    CHECK(refused);
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    nested(programs::calls(0), {id_of('['), id_of('a'), id_of('b')}, {id_of('a'), id_of(']'), id_of(']')}, 12);
    nested(programs::calls(1), {id_of('c')}, {id_of('a')}, 8);
    nested(programs::calls(2), {id_of('[')}, {id_of(']'), id_of('['), id_of(']')}, 12);
    nested(programs::special(1), {programs::kSpecial}, {id_of('b'), programs::kSpecial, id_of('a'), id_of('b')}, 8);
    RUN(special_tokens());
    return check::report();
}
