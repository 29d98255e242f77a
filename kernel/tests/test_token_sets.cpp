// Sets of tokens of all forms, compared with simple sets of numbers.
#include <random>
#include <set>
#include <vector>

#include "check.h"
#include "guideway/base/bit_row.h"
#include "guideway/mask/token_sets.h"

using namespace guideway;

namespace {

constexpr std::uint32_t kWords = 8, kTokens = kWords * 32;
using Row = std::vector<std::uint32_t>;
using Set = std::set<std::uint32_t>;

std::vector<std::uint32_t> listed(const Set& set) { return {set.begin(), set.end()}; }

Row row_of(const Set& set) {
    Row row(kWords);
    for (const std::uint32_t t : set) row[t >> 5] |= 1u << (t & 31);
    return row;
}

Set some(std::mt19937& random, std::uint32_t most) {
    Set made;
    for (std::uint64_t n = random() % (most + 1); n-- > 0;) made.insert(static_cast<std::uint32_t>(random() % kTokens));
    return made;
}

Set some_of(std::mt19937& random, const Set& from) {
    Set made;
    for (const std::uint32_t t : from)
        if (random() % 3 == 0) made.insert(t);
    return made;
}

Set joined(Set one, const Set& other) {
    one.insert(other.begin(), other.end());
    return one;
}

Set without(Set one, const Set& other) {
    for (const std::uint32_t t : other) one.erase(t);
    return one;
}

// A list, a row, and deltas of both: write, restore, merge, queries.
void written(std::mt19937& random) {
    TokenSets sets(kWords);
    const Set held = some(random, random() % 2 ? 3 : kTokens);
    for (const TokenSetId base : {sets.sparse(listed(held)), sets.row(row_of(held))}) {
        Set now = held;
        TokenSetId id = base;
        for (int turn = 0; turn < 3; ++turn) {
            for (std::uint32_t t = 0; t < kTokens; ++t) CHECK(sets[base].holds(t) == held.contains(t));
            Row row(kWords, 0xdeadbeef);
            sets.write(id, row);
            CHECK(row == row_of(held));
            sets.change(id, row);
            CHECK(row == row_of(now));
            CHECK(sets.delta_base(id) == base);
            const Set others = some(random, 20);  // other tokens of the row
            row = row_of(joined(now, others));
            sets.restore(id, row);
            CHECK(row == row_of(joined(joined(now, others), without(held, now))));
            row = row_of(others);
            sets.merge(id, row);
            CHECK(row == row_of(joined(held, others)));
            const Set taken = some_of(random, now), added = without(some(random, 5), now);
            id = sets.changed(id, listed(taken), listed(added));
            now = joined(without(now, taken), added);
        }
    }
}

// Bits of lists of all lengths are set and cleared, and no others.
void set_and_cleared(std::mt19937& random) {
    const Set before = some(random, kTokens), list = some(random, static_cast<std::uint32_t>(random() % 20));
    Row row = row_of(before);
    set_bits(row, listed(list));
    CHECK(row == row_of(joined(before, list)));
    clear_bits(row, listed(list));
    CHECK(row == row_of(without(before, list)));
    for (std::uint32_t t = 0; t < kTokens; ++t) CHECK(has_bit(row, t) == (before.contains(t) && !list.contains(t)));
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    std::mt19937 random(7);
    for (int turn = 0; turn < 500; ++turn) written(random);
    for (int turn = 0; turn < 500; ++turn) set_and_cleared(random);
    return check::report();
}
