// Whether an intersection or difference has a text: a search over the states of its parts.
//
// For the maintainer: a search state has the states of the positive parts, those of the complemented parts (marked by a bit),
// and the position inside an encoded character. A* (Hart, Nilsson and Raphael 1968); the heuristic is the largest shortest
// length of a positive part. If any text is enough, it is greedy best-first, up to the first state known to be nonempty.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guideway/base/flat_map.h"
#include "guideway/base/intern_table.h"
#include "guideway/regex/expr.h"
#include "guideway/regex/lazy_dfa.h"

namespace guideway {

// A part of a search state: an expression that must match the text, or one that must not. The last word of a list of parts is the
// position inside a character.
enum class SearchPart : std::uint32_t {};

// The data of one search.
struct SearchState {
    struct Listed {  // a list of parts, with a position inside a character after them
        std::uint32_t begin, count;
        std::uint64_t hash;
    };
    struct Seen {
        std::uint32_t list, depth, parent;
    };
    struct Task {
        std::uint32_t least, at;  // a lower bound of the length; a position in `seen_`: among equals, the last is first
    };
    std::vector<Listed> lists_;
    std::vector<SearchPart> listed_;
    std::vector<std::uint32_t> depths_;
    InternTable states_;
    std::vector<Seen> seen_;
    std::vector<Task> tasks_;
    std::uint32_t best_ = kInfinite, best_at_ = 0;
    bool any_ = false;  // any text is enough
    std::vector<SearchPart> parts_, flat_;
    std::vector<ExprId> heads_;  // of `has_escapes`
};

class ByteFacts;

class PartSearch : SearchState {
public:
    PartSearch(ExprTable& exprs, LazyDfa& dfa, ByteFacts& byte_facts) : exprs_(exprs), dfa_(dfa), byte_facts_(byte_facts) {}
    // Length of a shortest text of an intersection, a difference, a complement or a number; kInfinite if there is none.
    // Throws SearchLimit after `most` states.
    std::uint32_t shortest(ExprId start, std::size_t most);
    // Whether there is one. Throws the same.
    bool is_nonempty(ExprId start, std::size_t most);
    // Whether the next character may be one that can only be written as an escape. May return true in other cases.
    bool has_escapes(ExprId part);
    std::size_t bytes() const {
        return (listed_.capacity() + known_parts_.size()) * 4 + known_.size() * sizeof(Known) + known_ids_.bytes() + bytes_.size() * 48 +
               joint_.size() * 48 + escapes_.bytes();
    }

private:
    // Begins a search. Another may be in progress: a step of a composite value steps a machine, which needs other searches.
    class Session {
    public:
        explicit Session(PartSearch& all) : all_(all) {
            if (all_.open_) before_ = std::make_unique<SearchState>(std::exchange(static_cast<SearchState&>(all_), {}));
            ++all_.open_;
        }
        ~Session() {
            --all_.open_;
            if (before_) static_cast<SearchState&>(all_) = std::move(*before_);
        }
        Session(const Session&) = delete;

    private:
        PartSearch& all_;
        std::unique_ptr<SearchState> before_;  // data of the search in progress
    };
    struct Known {
        Listed list;
        bool alive;
    };
    static bool later(const Task& x, const Task& y) { return x.least != y.least ? x.least > y.least : x.at < y.at; }

    ClassesId joint(ClassesId a, ClassesId b);
    const std::vector<std::uint8_t>& bytes_of_classes(ClassesId classes);
    ExprId after(ExprId part, std::uint8_t byte);
    template <class F>
    void for_each_derivative(F&& f);
    bool begins(const ByteSet& bytes);
    void follow(const ByteSet& bytes);
    bool flatten();
    bool lacks_bytes();
    void see(std::uint32_t place, std::uint32_t depth, std::uint32_t parent);
    void expand(const Seen& here, std::uint32_t at);
    bool search(ExprId start, bool any, std::size_t most);
    void keep(const Listed& list, bool alive);
    void keep_path();

    ExprTable& exprs_;
    LazyDfa& dfa_;
    ByteFacts& byte_facts_;
    FlatMap<ExprId, bool, NumberHash> escapes_;
    std::unordered_map<std::uint64_t, ClassesId> joint_;    // by two ids of classes: the classes that neither distinguishes
    IdVector<ClassesId, std::vector<std::uint8_t>> bytes_;  // a byte of each class
    std::vector<Known> known_;                              // states with an empty language, and some others
    std::vector<SearchPart> known_parts_;
    InternTable known_ids_;
    unsigned open_ = 0;  // number of nested searches
};

}  // namespace guideway
