#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <cstring>
#include <memory>

#include "bindings.h"
#include "guideway/base/error.h"
#include "guideway/matcher/compiled.h"
#include "guideway/matcher/matcher.h"
#include "long_calls.h"

namespace guideway {

namespace {

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

// Owns a reference to the Python object. nanobind's own conversion ends the process if memory is exhausted.
std::shared_ptr<const Vocabulary> shared(nb::handle_t<Vocabulary> vocabulary) {
    const nb::handle object = vocabulary;
    object.inc_ref();
    return {nb::inst_ptr<Vocabulary>(object), [object](const Vocabulary*) {
                if (!nb::is_alive()) return;
                const nb::gil_scoped_acquire acquire;
                object.dec_ref();
            }};
}

std::vector<std::uint32_t> words_of(const nb::bytes& program) {
    if (program.size() % 4) throw Error(ErrorKind::invalid, "malformed program: it is not made of 32-bit words");
    std::vector<std::uint32_t> words(program.size() / 4);
    std::memcpy(words.data(), program.data(), program.size());
    if constexpr (std::endian::native == std::endian::big)
        for (std::uint32_t& word : words) word = swapped(word);
    return words;
}

// The caller owns the result.
Compiled* compile(nb::handle_t<Vocabulary> vocabulary, const nb::bytes& program) {
    const std::vector<std::uint32_t> words = words_of(program);
    std::shared_ptr<const Vocabulary> owned = shared(vocabulary);
    const nb::gil_scoped_release release;
    return new Compiled(std::move(owned), words);
}

bool is_empty(const Vocabulary& vocabulary, const nb::bytes& program) {
    const std::vector<std::uint32_t> words = words_of(program);
    const nb::gil_scoped_release release;
    return Automaton::is_empty(vocabulary, words);
}

nb::dict stats(const Compiled& c) {
    const Automaton::Stats s = [&] {
        const nb::gil_scoped_release release;  // it may compile
        return c.automaton()->stats();
    }();
    nb::dict made;
    made["nodes"] = s.nodes;
    made["frames"] = s.frames;
    made["expressions"] = s.expressions;
    made["memo_bytes"] = s.runs_bytes;
    made["memo_hits"] = s.runs_hits;
    made["memo_misses"] = s.runs_misses;
    return made;
}

// Adds the token's bytes, the position and some legal tokens to a rejection; rethrows other errors unchanged.
[[noreturn]] void raise_rejection(const Matcher& matcher, std::int64_t token, const Error& error) {
    if (error.kind != ErrorKind::rejected) throw;
    constexpr std::size_t kShown = 5;
    const Vocabulary& vocabulary = matcher.automaton().vocabulary();
    const auto shown = [&](std::uint32_t id) { return bytes_of(vocabulary.shown(vocabulary.token(id))); };
    nb::list legal;
    try {
        std::vector<std::uint32_t> row(vocabulary.words());
        released_when_long(matcher, [&] { matcher.fill_mask(row); });
        for (std::uint32_t id = 0; id < vocabulary.size() && legal.size() < kShown; ++id)
            if (row[id / 32] >> (id % 32) & 1) legal.append(nb::make_tuple(id, shown(id)));
    } catch (const Error&) {  // no mask can be computed here; the rejection is reported without legal tokens
    }
    const nb::object type = nb::module_::import_("guideway.errors").attr("RejectedTokenError");
    const nb::object made =
        type(error.what(), nb::arg("token_id") = token, nb::arg("token_bytes") = shown(static_cast<std::uint32_t>(token)),
             nb::arg("position") = matcher.position(), nb::arg("legal_tokens") = nb::tuple(legal));
    PyErr_SetObject(type.ptr(), made.ptr());
    throw nb::python_error();
}

std::uint32_t min_tokens_to_complete(const Matcher& matcher) {
    const std::uint32_t tokens = released_when_long(matcher, [&] { return matcher.tokens_to_finish(); });
    if (tokens != kInfinite) return tokens;
    const nb::object text = bytes_of(released_when_long(matcher, [&] { return matcher.completion(); }));
    throw Error(ErrorKind::unsatisfiable,
                std::string("the vocabulary has no tokens that spell the shortest completion ") + nb::repr(text).c_str());
}

}  // namespace

void bind_matcher(nb::module_& m) {
    nb::class_<Compiled>(m, "Automaton", nb::is_weak_referenceable(),
                         "A constraint compiled for a vocabulary. Immutable; threads can share it.")
        .def_static("compile", &compile, nb::rv_policy::take_ownership, nb::arg("vocabulary"), nb::arg("program"),
                    nb::sig("def compile(vocabulary: KernelVocabulary, program: bytes) -> Automaton"),
                    "Compile a program (`guideway.grammar.program`), little-endian words.")
        .def_static("is_empty", &is_empty, nb::arg("vocabulary"), nb::arg("program"),
                    "Whether no text fits a program. Cheaper than `compile`.")
        .def(
            "matcher",
            [](const Compiled& self) {
                const nb::gil_scoped_release release;
                return Matcher(self.automaton());
            },
            "A matcher at the start of the text.")
        .def(
            "warm_up",
            [](const Compiled& self, std::uint64_t work) {
                const nb::gil_scoped_release release;
                self.automaton()->warm_up(work);
            },
            nb::arg("work"),
            "Precompute results that masks need. work: the maximum number of units of work; 100 units take about a microsecond.")
        .def("__repr__",
             [](const Compiled& self) {
                 const nb::gil_scoped_release release;  // it may compile
                 const auto automaton = self.automaton();
                 return "Automaton(" + std::to_string(automaton->stats().nodes) + " nodes, vocabulary of " +
                        std::to_string(automaton->vocabulary().size()) + " tokens)";
             })
        .def("stats", &stats, nb::sig("def stats(self) -> dict[str, int]"), "Sizes and memo hits, for benchmarks.");

    nb::enum_<Matcher::Fit>(m, "Fit", "How a token budget changes a mask; see `Matcher.fill_masks_within`.")
        .value("NONE", Matcher::Fit::none, "No token fits the budget.")
        .value("ALL", Matcher::Fit::all, "Every legal token fits the budget.")
        .value("SOME", Matcher::Fit::some, "Some legal tokens do not fit the budget.");

    nb::class_<Matcher>(m, "Matcher", "Walks an automaton along one sequence of tokens; see `guideway.matcher`.")
        .def(
            "fill_mask", [](const Matcher& self, const MaskRow& row) { released_when_long(self, [&] { self.fill_mask(words(row)); }); },
            nb::arg("row").noconvert(),
            "Set bit t % 32 of word t // 32 for each legal token t, and clear all other bits. row: ceil(V / 32) uint32, "
            "writable.")
        .def(
            "fill_mask_within",
            [](const Matcher& self, const MaskRow& row, std::uint32_t left) {
                return released_when_long(self, [&] { return self.fill_mask_within(words(row), left); });
            },
            nb::arg("row").noconvert(), nb::arg("tokens_left"),
            "As `fill_mask`, but allow only tokens after which `tokens_left - 1` more tokens, end token included, can "
            "complete the text. Return False if there are none.")
        .def(
            "fill_masks_within",
            [](const Matcher& self, const MaskRow& row, const MaskRow& whole, std::uint32_t left) {
                return released_when_long(self, [&] { return self.fill_masks_within(words(row), words(whole), left); });
            },
            nb::arg("row").noconvert(), nb::arg("whole").noconvert(), nb::arg("tokens_left"),
            "As `fill_mask_within`. If the result is Fit.SOME, the budget removed tokens, and `whole` is filled as by "
            "`fill_mask`; otherwise the content of `whole` is unspecified.")
        .def(
            "fill_draft_masks",
            [](const Matcher& self, const Integers& given, const Integers& given_parents, const MaskRows& rows) {
                const auto tokens = integers<std::int64_t>(given), parents = integers<std::int64_t>(given_parents);
                const std::vector<const Matcher*> one{&self};
                const InUse use(one);
                const nb::gil_scoped_release release;
                self.fill_draft_masks(tokens, parents, {rows.data(), rows.size()});
            },
            nb::arg("token_ids"), nb::arg("parents"), nb::arg("rows").noconvert(),
            "Fill row i with the mask after draft token i. Draft token i follows draft token parents[i], which is an "
            "earlier one, or the tokens taken so far (-1). Rows after illegal tokens have no bits. The matcher does not "
            "change.")
        .def(
            "advance",
            [](Matcher& self, std::int64_t token) {
                try {
                    released_when_long(self, [&] { self.advance(token); });
                } catch (const Error& error) {
                    raise_rejection(self, token, error);
                }
            },
            nb::arg("token_id"), "Take a token. If RejectedTokenError or InvalidTokenError is raised, the matcher has not changed.")
        .def(
            "advance_and_fill",
            [](Matcher& self, std::int64_t token, const MaskRow& row) {
                try {
                    released_when_long(self, [&] { self.advance_and_fill(token, words(row)); });
                } catch (const Error& error) {
                    raise_rejection(self, token, error);
                }
            },
            nb::arg("token_id"), nb::arg("row").noconvert(),
            "Call `advance`, then `fill_mask`. If an error is raised, the matcher has not changed.")
        .def(
            "mask_digest",
            [](const Matcher& self) {
                const Matcher::MaskId id = released_when_long(self, [&] { return self.mask_id(); });
                return (nb::int_(id[0]) << nb::int_(64)) | nb::int_(id[1]);
            },
            nb::sig("def mask_digest(self) -> int"),
            "A 128-bit digest of what `fill_mask` would write. Equal masks have equal digests in all processes, on all "
            "machines with the same byte order. A cache of masks on a device can use it as its key.")
        .def(
            "rollback", [](Matcher& self, std::size_t count) { released_when_long(self, [&] { self.rollback(count); }); }, nb::arg("count"),
            "Undo the last `count` tokens. Raises ValueError if there are fewer.")
        .def(
            "fork", [](const Matcher& self) { return released_when_long(self, [&] { return Matcher(self); }); }, "An independent copy.")
        .def(
            "validate",
            [](const Matcher& self, const Integers& given) {
                const auto tokens = integers<std::int64_t>(given);
                return released_when_long(self, [&] { return self.validate(tokens); });
            },
            nb::arg("tokens"), "The length of the longest prefix of the tokens that the matcher could take. The matcher does not change.")
        .def(
            "forced_bytes", [](const Matcher& self) { return bytes_of(released_when_long(self, [&] { return self.forced_bytes(); })); },
            "The bytes with which every continuation of the text begins, up to 4,096 bytes. A special token counts as its name. "
            "They end where one of several special tokens could follow. None inside a quotation.")
        .def(
            "forced_tokens", [](const Matcher& self) { return released_when_long(self, [&] { return self.forced_tokens(); }); },
            "Tokens that spell the forced bytes, each the longest possible. Stops where a legal token could extend beyond "
            "the forced bytes.")
        .def("min_tokens_to_complete", &min_tokens_to_complete,
             "The smallest number of tokens that spell the shortest completion, end token included. Raises "
             "UnsatisfiableError if no tokens of the vocabulary spell it.")
        .def(
            "completion", [](const Matcher& self) { return bytes_of(released_when_long(self, [&] { return self.completion(); })); },
            "A shortest text that completes the text so far.")
        .def("__repr__",
             [](const Matcher& self) {
                 std::string shown = "Matcher(position=" + std::to_string(self.position());
                 if (self.is_finished()) return shown + ", is_finished=True)";
                 try {
                     shown +=
                         released_when_long(self, [&] { return self.is_accepting(); }) ? ", is_accepting=True" : ", is_accepting=False";
                 } catch (const Error&) {  // without this attribute, if a limit is reached
                 }
                 return shown + ")";
             })
        .def_prop_ro(
            "quotation",
            [](const Matcher& self) -> std::optional<const char*> {
                const Quotation found = released_when_long(self, [&] { return self.quotation(); });
                if (found == Quotation::none) return std::nullopt;
                return found == Quotation::begins ? "begins" : "inside";
            },
            "\"begins\" before the first character of a verbatim string, \"inside\" after it, None outside of verbatim "
            "strings.")
        .def_prop_ro(
            "is_accepting", [](const Matcher& self) { return released_when_long(self, [&] { return self.is_accepting(); }); },
            "Whether the text may end here.")
        .def_prop_ro("is_finished", &Matcher::is_finished, "Whether the matcher has taken an end token.")
        .def_prop_ro("position", &Matcher::position, "The number of tokens taken.")
        .def_prop_ro(
            "words", [](const Matcher& self) { return self.automaton().vocabulary().words(); },
            "The number of 32-bit words of a mask row.");
}

}  // namespace guideway
