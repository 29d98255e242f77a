// Intern tables, the index that can be dropped, lists of the size of a pointer.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "guideway/base/byte_set.h"
#include "guideway/base/id.h"
#include "guideway/base/intern_table.h"
#include "guideway/base/small_list.h"

using namespace guideway;

namespace {

// An index that is sometimes dropped finds the same items.
void test_index() {
    std::mt19937 chance(3);
    enum class Id : std::uint32_t {};
    DroppableIndex<Id> index;
    std::vector<std::uint32_t> things;
    std::map<std::uint32_t, std::uint32_t> twin;
    bool same = true;
    for (int turn = 0; turn < 30000; ++turn) {
        if (turn % 7000 == 6999) index.drop_if_small();  // a large one is not emptied
        if (turn % 9000 == 8999) index = {};
        const auto wanted = static_cast<std::uint32_t>(chance() % 20000);
        const auto hash = [](std::uint32_t thing) { return mix(thing, 5); };
        const std::optional<Id> found = index.find(
            hash(wanted), things.size(), [&](Id id) { return hash(things[raw(id)]); }, [&](Id id) { return things[raw(id)] == wanted; });
        const auto [known, fresh] = twin.emplace(wanted, static_cast<std::uint32_t>(things.size()));
        same &= found == (fresh ? std::nullopt : std::optional(Id{known->second}));
        if (!fresh) continue;
        things.push_back(wanted);
        index.add(hash(wanted));
    }
    CHECK(same && things.size() > 10000);
}

void test_list() {
    List<std::string> none, some{"a", "b"};
    CHECK(none.empty() && none.size() == 0 && none.begin() == none.end() && some.size() == 2 && some.back() == "b");
    for (int i = 0; i < 100; ++i) some.push_back(some[0] + std::to_string(i));  // reallocates the list while an element is used
    List<std::string> copy = some, moved = std::move(some);
    CHECK(std::ranges::equal(copy, moved) && copy.size() == 102 && copy[101] == "a99");
    copy.assign(3, "x");
    moved = copy;
    CHECK(moved.size() == 3 && moved[2] == "x");
    moved = {};
    CHECK(moved.empty());
}

// Each id is found once while a table grows.
void test_ids() {
    InternTable table;
    const auto hash = [](std::uint32_t id) { return mix(id % 5000, 7); };  // some are equal
    for (std::uint32_t id = 0; id < 40000; ++id) {
        table.add(hash(id), id);
        for (const std::uint32_t known : {id, id / 2, id / 3})
            if (table.find(hash(known), [&](std::uint32_t other) { return other == known; }) != known) CHECK(false);
    }
    CHECK(table.find(hash(1), [](std::uint32_t) { return false; }) == InternTable::kMissing);
}

}  // namespace

int main(int argc, char** argv) {
    check::begin(argc, argv);
    RUN(test_index());
    RUN(test_list());
    RUN(test_ids());
    return check::report();
}
