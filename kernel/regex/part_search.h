// Whether an intersection or difference has a text: a search over the states of its parts.
//
// For the maintainer: a search state has the states of the positive parts, those of the complemented parts (a bit is set),
// and the place inside an encoded character. A* (Hart, Nilsson and Raphael 1968); the heuristic is the largest shortest
// length of a positive part. If any text suffices, it is greedy best-first, up to the first state known to be non-empty.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/base/flat_map.h"
#include "guideway/base/intern_table.h"
#include "guideway/regex/expr.h"

namespace guideway {

// What one search has seen so far.
struct SearchState {
    struct Listed {  // of parts, and a place after them
        std::uint32_t begin, count;
        std::uint64_t hash;
    };
    struct Seen {
        std::uint32_t list, depth, parent;
    };
    struct Task {
        std::uint32_t least, at;  // bytes at least; in seen_: of equals the last
    };
    std::vector<Listed> lists_;
    std::vector<std::uint32_t> listed_, depths_;
    InternTable states_;
    std::vector<Seen> seen_;
    std::vector<Task> tasks_;
    std::uint32_t best_ = kInfinite, best_at_ = 0;
    bool any_ = false;  // any text will do
    std::vector<std::uint32_t> parts_, flat_;
    std::vector<ExprId> heads_;  // of `has_escapes`
};

class ByteFacts;
class LazyDfa;

class PartSearch : SearchState {
public:
    PartSearch(ExprTable& exprs, LazyDfa& dfa, ByteFacts& byte_facts) : exprs_(exprs), dfa_(dfa), byte_facts_(byte_facts) {}
    // Bytes of a shortest text of an intersection, a difference, a complement or a number; kInfinite if there is none.
    // Throws SearchLimit after `most` states.
    std::uint32_t shortest(ExprId start, std::size_t most);
    // Whether there is one. Throws the same.
    bool is_nonempty(ExprId start, std::size_t most);
    // Whether a character that can only be written as an escape may come next; perhaps too often.
    bool has_escapes(ExprId part);
    std::size_t bytes() const {
        return (listed_.capacity() + known_parts_.size()) * 4 + known_.size() * sizeof(Known) + known_ids_.bytes() + bytes_.size() * 48 +
               joint_.size() * 48 + escapes_.bytes();
    }

private:
    // Begins a search. Another may be open: a step of a value steps a machine, which asks whether something lives.
    class Turn {
    public:
        explicit Turn(PartSearch& all) : all_(all) {
            if (all_.open_) before_ = std::make_unique<SearchState>(std::exchange(static_cast<SearchState&>(all_), {}));
            ++all_.open_;
        }
        ~Turn() {
            --all_.open_;
            if (before_) static_cast<SearchState&>(all_) = std::move(*before_);
        }
        Turn(const Turn&) = delete;

    private:
        PartSearch& all_;
        std::unique_ptr<SearchState> before_;  // the one that is open
    };
    struct Known {
        Listed list;
        bool alive;
    };
    static bool later(const Task& x, const Task& y) { return x.least != y.least ? x.least > y.least : x.at < y.at; }

    std::uint32_t joint(std::uint32_t a, std::uint32_t b);
    const std::vector<std::uint8_t>& bytes_of_classes(std::uint32_t classes);
    ExprId after(ExprId part, std::uint8_t byte);
    template <class F>
    void for_each_derivative(F&& f);
    bool begins(const ByteSet& bytes);
    void follow(const ByteSet& bytes);
    bool flatten();
    bool lacks_bytes();
    void see(std::uint32_t place, std::uint32_t depth, std::uint32_t parent);
    void go_on(const Seen& here, std::uint32_t at);
    bool search(ExprId start, bool any, std::size_t most);
    void keep(const Listed& list, bool alive);
    void keep_path();

    ExprTable& exprs_;
    LazyDfa& dfa_;
    ByteFacts& byte_facts_;
    FlatMap<ExprId, bool, NumberHash> escapes_;
    std::unordered_map<std::uint64_t, std::uint32_t> joint_;  // classes of bytes that neither of two tells apart
    std::vector<std::vector<std::uint8_t>> bytes_;            // by classes: a byte of each
    std::vector<Known> known_;                                // lists without a text, and some with one
    std::vector<std::uint32_t> known_parts_;
    InternTable known_ids_;
    unsigned open_ = 0;  // searches, one inside another
};

}  // namespace guideway
