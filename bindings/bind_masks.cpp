#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "bindings.h"
#include "guideway/batch.h"
#include "guideway/error.h"
#include "guideway/masks.h"
#include "guideway/matcher.h"

namespace guideway {

namespace {

using Tokens = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using Logits = nb::ndarray<float, nb::ndim<2>, nb::device::cpu>;

// Row by row; the sequence may make its items as they are asked for, so they are held.
template <class M>
std::vector<M*> pointers(const nb::sequence& matchers, std::vector<nb::object>& held) {
    std::vector<M*> made;
    for (nb::handle h : matchers) {
        held.push_back(nb::borrow(h));
        made.push_back(h.is_none() ? nullptr : nb::cast<M*>(h));
    }
    return made;
}

std::span<std::uint32_t> words(const MaskRows& rows) { return {rows.data(), rows.size()}; }

void check_rows(const MaskRows& rows, std::size_t needed) {
    if (rows.shape(0) == needed) return;
    const std::string given = std::to_string(needed), there = std::to_string(rows.shape(0));
    throw Error(ErrorKind::argument, "there are " + given + " matchers, but " + there + " rows");
}

// The rows of `follow`, as Python gives them.
std::vector<Follow> follows(const nb::sequence& matchers, const std::vector<std::int64_t>& tokens, const std::vector<std::uint32_t>& left,
                            const MaskRows& rows, std::vector<nb::object>& held) {
    const auto all = pointers<Matcher>(matchers, held);
    check_rows(rows, all.size());
    if (tokens.size() != all.size() || left.size() != all.size()) throw Error(ErrorKind::argument, "not as many tokens and budgets as matchers");
    std::vector<Follow> made;
    for (std::size_t i = 0; i < all.size(); ++i) made.push_back({all[i], tokens[i], left[i]});
    return made;
}

// A job, and the Python objects that it uses.
struct PythonJob {
    std::vector<nb::object> held;
    MaskRows rows;
    std::unique_ptr<FollowJob> job;
};

LogitRows logit_rows(const Logits& logits) {
    if (logits.shape(1) > 1 && logits.stride(1) != 1) throw Error(ErrorKind::argument, "the logits of a row do not lie side by side");
    return {logits.data(), logits.shape(0), logits.shape(1), static_cast<std::ptrdiff_t>(logits.stride(0))};
}

}  // namespace

void bind_masks(nb::module_& m) {
    m.def("fill_masks",
          [](const nb::sequence& matchers, const MaskRows& rows, unsigned threads) {
              std::vector<nb::object> held;
              const auto all = pointers<const Matcher>(matchers, held);
              check_rows(rows, all.size());
              const nb::gil_scoped_release release;
              fill_masks(all, words(rows), rows.shape(1), threads);
          },
          nb::arg("matchers"), nb::arg("rows").noconvert(),  // a converted copy would be filled, and thrown away
          nb::arg("threads") = 1u,
          nb::sig("def fill_masks(matchers: collections.abc.Sequence[Matcher | None], rows: numpy.typing.NDArray[numpy.uint32], "
                  "threads: int = 1) -> None"),
          "fill_mask for a batch: row i of `rows` ([n, ceil(V / 32)] uint32) is matcher i's mask; None: every bit set. The GIL is "
          "released; `threads` workers share the rows, which pays from about a thousand rows, or where masks are not remembered yet.");
    m.def("advance_and_fill",
          [](const nb::sequence& matchers, const std::vector<std::int64_t>& tokens, const MaskRows& rows, unsigned threads) {
              std::vector<nb::object> held;
              const auto all = pointers<Matcher>(matchers, held);
              check_rows(rows, all.size());
              const nb::gil_scoped_release release;
              advance_and_fill(all, tokens, words(rows), rows.shape(1), threads);
          },
          nb::arg("matchers"), nb::arg("token_ids"), nb::arg("rows").noconvert(), nb::arg("threads") = 1u,
          nb::sig("def advance_and_fill(matchers: collections.abc.Sequence[Matcher | None], token_ids: collections.abc.Sequence[int], "
                  "rows: numpy.typing.NDArray[numpy.uint32], threads: int = 1) -> None"),
          "Matcher i takes token i, and row i becomes its mask; all or none: RejectedToken or InvalidToken names the row, and nobody has "
          "moved. The token of a None is not looked at.");
    m.def("only_token", [](const MaskRow& row) { return only_token(words(row)); }, nb::arg("row").noconvert(),
          "The one token that a row allows; None where it allows none, or several.");
    m.def("follow",
          [](const nb::sequence& matchers, const std::vector<std::int64_t>& tokens, const std::vector<std::uint32_t>& left, const MaskRows& rows) {
              std::vector<nb::object> held;
              const auto made = follows(matchers, tokens, left, rows, held);
              const nb::gil_scoped_release release;
              return follow(made, words(rows), rows.shape(1));
          },
          nb::arg("matchers"), nb::arg("tokens"), nb::arg("left"), nb::arg("rows").noconvert(),
          nb::sig("def follow(matchers: collections.abc.Sequence[Matcher | None], tokens: collections.abc.Sequence[int], "
                  "left: collections.abc.Sequence[int], rows: numpy.typing.NDArray[numpy.uint32]) -> list[bool]"),
          "Matcher i takes token i where that is legal (-1: none is to be taken), and row i becomes its mask, of tokens that fit the budget "
          "left[i] (0, or where none fits: of all). None, or a token that is not legal: every bit. Gives which took theirs, or had none. "
          "The GIL is released.");
    nb::class_<PythonJob>(m, "FollowJob", "`follow` on a thread of its own; matchers and rows are left alone until it was waited for.")
        .def("__init__",
             [](PythonJob* self, const nb::sequence& matchers, const std::vector<std::int64_t>& tokens, const std::vector<std::uint32_t>& left,
                const MaskRows& rows) {
                 std::vector<nb::object> held;
                 auto made = follows(matchers, tokens, left, rows, held);
                 auto job = std::make_unique<FollowJob>(std::move(made), words(rows), rows.shape(1));
                 new (self) PythonJob{std::move(held), rows, std::move(job)};
             },
             nb::arg("matchers"), nb::arg("tokens"), nb::arg("left"), nb::arg("rows").noconvert(),
             nb::sig("def __init__(self, matchers: collections.abc.Sequence[Matcher | None], tokens: collections.abc.Sequence[int], "
                     "left: collections.abc.Sequence[int], rows: numpy.typing.NDArray[numpy.uint32]) -> None"))
        .def("wait",
             [](PythonJob& self) {
                 const nb::gil_scoped_release release;
                 return self.job->wait();
             },
             "What `follow` gives, or raises.")
        .def_prop_ro("seconds", [](const PythonJob& self) { return self.job->seconds(); }, "What it took, once it was waited for.");
    m.def("same_columns",
          [](const Tokens& left, const Tokens& right, std::size_t count) {
              const auto bytes = [](const Tokens& table) { return table.itemsize(); };
              const bool fits = bytes(left) == bytes(right) && left.shape(0) == right.shape(0) && count <= std::min(left.shape(1), right.shape(1));
              const auto packed = [](const Tokens& table) { return table.shape(1) < 2 || table.stride(1) == 1; };
              if (!fits || !packed(left) || !packed(right)) return false;
              const auto row = [&](const Tokens& table, std::size_t i) {
                  return static_cast<const char*>(table.data()) + static_cast<std::ptrdiff_t>(i) * table.stride(0) * static_cast<std::ptrdiff_t>(bytes(table));
              };
              for (std::size_t i = 0; i < left.shape(0); ++i)
                  if (std::memcmp(row(left, i), row(right, i), count * bytes(left)) != 0) return false;
              return true;
          },
          nb::arg("left"), nb::arg("right"), nb::arg("count"),
          nb::sig("def same_columns(left: numpy.typing.NDArray[numpy.integer[typing.Any]], right: numpy.typing.NDArray[numpy.integer[typing.Any]], "
                  "count: int) -> bool"),
          "Whether two tables of integers of one width have the same rows, up to column `count`; False as well where they cannot be compared "
          "so (other shapes, types, or rows that do not lie in one piece).");
    m.def("mask_logits",
          [](const Logits& source, const Logits& target, const MaskRows& rows, const nb::sequence& held) {
              const LogitRows from = logit_rows(source), to = logit_rows(target);
              const auto flags = std::make_unique<bool[]>(from.count);
              std::size_t given = 0;
              for (nb::handle h : held)
                  if (given++ < from.count) flags[given - 1] = nb::cast<bool>(h);
              if (to.count != from.count || to.width != from.width || rows.shape(0) != from.count || given != from.count)
                  throw Error(ErrorKind::argument, "logits, target, masks and flags are of different sizes");
              const nb::gil_scoped_release release;
              return mask_logits(from, to, words(rows), rows.shape(1), {flags.get(), from.count});
          },
          nb::arg("source").noconvert(), nb::arg("target").noconvert(), nb::arg("rows").noconvert(), nb::arg("held"),
          nb::sig("def mask_logits(source: numpy.typing.NDArray[numpy.float32], target: numpy.typing.NDArray[numpy.float32], "
                  "rows: numpy.typing.NDArray[numpy.uint32], held: collections.abc.Sequence[bool]) -> list[int]"),
          "`target` ([n, width] float32; `source` itself, or apart from it) becomes `source`, in rows that are `held` with -inf for what "
          "their mask ([n, words] uint32) does not allow, and beyond it. Gives the held rows where no legal token has a logit above "
          "-inf. Rows need not lie side by side, the logits of one do. The GIL is released.");
}

}  // namespace guideway
