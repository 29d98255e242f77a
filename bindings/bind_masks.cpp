#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "guideway/batch.h"
#include "guideway/error.h"
#include "guideway/masks.h"
#include "guideway/matcher.h"

namespace guideway {

namespace {

using Room = nb::ndarray<std::int64_t, nb::ndim<2>, nb::device::cpu>;
using Tokens = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::device::cpu>;
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

// `LoopRows`, and the Python objects that they use.
struct PythonRows {
    std::vector<nb::object> held;
    MaskRows masks;  // that are being found
    std::unique_ptr<LoopRows> rows;
    mutable std::mutex use{};  // no one who holds it waits for the GIL

    // f(rows), with no thread at work on them, neither ours nor a caller's. The GIL is released.
    template <class F>
    auto with(F&& f) const {
        const nb::gil_scoped_release release;
        const std::lock_guard alone(use);
        rows->settle();
        return f(*rows);
    }
};

std::unique_ptr<LoopRows> loop_rows(const nb::sequence& rows, std::vector<nb::object>& held) {
    std::vector<LoopRow> made;
    for (nb::handle one : rows) {
        std::tuple<nb::object, std::size_t, std::size_t, std::uint32_t> given;
        Matcher* matcher = nullptr;
        if (!nb::try_cast(one, given) || (!std::get<0>(given).is_none() && !nb::try_cast(std::get<0>(given), matcher)))
            throw nb::type_error("a row is a matcher or None, and three numbers from 0 on");
        made.push_back({matcher, std::get<1>(given), std::get<2>(given), std::get<3>(given)});
        held.push_back(std::get<0>(given));
    }
    return std::make_unique<LoopRows>(std::move(made));
}

// Where these are the rows that stand in the first `count` columns of `kept`, with one token more: writes it there too.
bool grow(LoopRows& rows, const Room& kept, const Tokens& ids, std::size_t count) {
    const bool fits = ids.shape(0) == rows.rows().size() && kept.shape(0) == ids.shape(0) && ids.shape(1) == count + 1 && kept.shape(1) > count;
    if (!fits || ids.stride(1) != 1 || kept.stride(1) != 1) return false;
    const auto row = [](const auto& table, std::size_t i) { return table.data() + static_cast<std::ptrdiff_t>(i) * table.stride(0); };
    for (std::size_t i = 0; i < ids.shape(0); ++i)
        if (std::memcmp(row(kept, i), row(ids, i), count * sizeof(std::int64_t)) != 0) return false;
    std::vector<std::int64_t> tokens;
    for (std::size_t i = 0; i < ids.shape(0); ++i) tokens.push_back(row(kept, i)[count] = row(ids, i)[count]);
    rows.grow(tokens);
    return true;
}

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
    nb::class_<PythonRows>(m, "LoopRows", "The rows of an engine's loop from step to step, each of which adds a token to all of them.")
        .def("__init__",
             [](PythonRows* self, const nb::sequence& rows) {
                 std::vector<nb::object> held;
                 auto made = loop_rows(rows, held);
                 new (self) PythonRows{std::move(held), {}, std::move(made)};
             },
             nb::arg("rows"), nb::sig("def __init__(self, rows: collections.abc.Sequence[tuple[Matcher | None, int, int, int]]) -> None"),
             "By row: its matcher (None: a free row), how many tokens stand in it, how many of them the matcher took, and how many all "
             "of it may have (0: any number).")
        .def("grow", [](PythonRows& self, const std::vector<std::int64_t>& tokens) { self.with([&](LoopRows& rows) { rows.grow(tokens); }); }, nb::arg("tokens"),
             "Row i goes on with token i, which its matcher takes in `run`, where it is legal.")
        .def("grow_to", [](PythonRows& self, const Room& kept, const Tokens& ids, std::size_t count) {
                 return self.with([&](LoopRows& rows) { return grow(rows, kept, ids, count); });
             },
             nb::arg("kept").noconvert(), nb::arg("ids").noconvert(), nb::arg("count"),
             nb::sig("def grow_to(self, kept: numpy.typing.NDArray[numpy.int64], ids: numpy.typing.NDArray[numpy.int64], count: int) -> bool"),
             "`grow` with the last column of `ids`, where `kept` has room for it behind `count` columns, and those are the others of `ids`; it "
             "is written to `kept` too. False: it is not so, and nothing has changed.")
        .def("run", [](PythonRows& self, const MaskRows& masks) {
                 self.with([&](LoopRows& rows) { rows.run(words(masks), masks.shape(1)); });
             },
             nb::arg("masks").noconvert(),
             "Rows take what they have grown by; row i of `masks` becomes the mask of row i, of tokens that fit its budget (where none fits: of "
             "all); every bit where it is not held. Once something was raised, no more can be asked. The GIL is released.")
        .def("begin", [](PythonRows& self, const MaskRows& masks) {
                 const std::lock_guard alone(self.use);
                 self.rows->wait();  // whoever writes to the masks of before
                 self.masks = masks;
                 self.rows->begin(words(masks), masks.shape(1));
             },
             nb::arg("masks").noconvert(), "`run` on a thread of its own; masks and matchers are left alone until `wait`.")
        .def("wait", [](PythonRows& self) { self.with([](LoopRows& rows) { rows.wait(); }); },
             "Until what was begun has ended; raises what `run` would have.")
        .def_prop_ro("seconds", [](const PythonRows& self) { return self.with([](const LoopRows& rows) { return rows.seconds(); }); }, "What it took on the other thread.")
        .def_prop_ro("held", [](const PythonRows& self) {
                 return self.with([](const LoopRows& rows) {
                     std::vector<bool> made;
                     for (const LoopRow& row : rows.rows()) made.push_back(row.is_held());
                     return made;
                 });
             },
             nb::sig("def held(self) -> list[bool]"), "Which rows are held: their matcher took all of their tokens, or has ended.")
        .def_prop_ro("lengths", [](const PythonRows& self) {
                 return self.with([](const LoopRows& rows) {
                     std::vector<std::pair<std::size_t, std::size_t>> made;
                     for (const LoopRow& row : rows.rows()) made.emplace_back(row.length, row.taken);
                     return made;
                 });
             },
             "By row: how many tokens stand in it, and how many of them were taken.");
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
