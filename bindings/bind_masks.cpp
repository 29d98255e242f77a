#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "bindings.h"
#include "guideway/batch.h"
#include "guideway/error.h"
#include "guideway/masks.h"
#include "guideway/matcher.h"

namespace guideway {

namespace {

using Logits = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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
    m.def("apply_mask", [](const Logits& logits, const MaskRow& row) { apply_mask({logits.data(), logits.size()}, words(row)); },
          nb::arg("logits").noconvert(), nb::arg("row").noconvert(),
          "Set the float32 logits of tokens that the mask does not allow to -inf, in place; those beyond the mask too.");
}

}  // namespace guideway
