#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <vector>

#include "bindings.h"
#include "guideway/base/error.h"
#include "guideway/logits/mask_logits.h"
#include "guideway/matcher/batch.h"
#include "guideway/matcher/matcher.h"
#include "long_calls.h"

namespace guideway {

namespace {

using Logits = nb::ndarray<float, nb::ndim<2>, nb::device::cpu>;

// The matchers of a sequence. `held` keeps them alive: a sequence may create its items when they are read.
template <class M>
std::vector<M*> pointers(const nb::sequence& matchers, std::vector<nb::object>& held) {
    std::vector<M*> made;
    for (nb::handle h : matchers) {
        held.push_back(nb::borrow(h));
        made.push_back(h.is_none() ? nullptr : nb::cast<M*>(h));
    }
    return made;
}

void check_rows(const MaskRows& rows, std::size_t needed) {
    if (rows.shape(0) == needed) return;
    const std::string given = std::to_string(needed), there = std::to_string(rows.shape(0));
    throw Error(ErrorKind::argument, "there are " + given + " matchers, but " + there + " rows");
}

LogitRows logit_rows(const Logits& logits) {
    if (logits.shape(1) > 1 && logits.stride(1) != 1) throw Error(ErrorKind::argument, "the logits of a row do not lie side by side");
    return {logits.data(), logits.shape(0), logits.shape(1), static_cast<std::ptrdiff_t>(logits.stride(0))};
}

}  // namespace

void bind_masks(nb::module_& m) {
    m.def(
        "fill_masks",
        [](const nb::sequence& matchers, const MaskRows& rows, unsigned threads) {
            std::vector<nb::object> held;
            const auto all = pointers<const Matcher>(matchers, held);
            check_rows(rows, all.size());
            const InUse use(all);
            const nb::gil_scoped_release release;
            fill_masks(all, words(rows), rows.shape(1), threads);
        },
        nb::arg("matchers"), nb::arg("rows").noconvert(),  // else a converted copy could be filled, and lost
        nb::arg("threads") = 1u,
        nb::sig("def fill_masks(matchers: collections.abc.Sequence[Matcher | None], rows: numpy.typing.NDArray[numpy.uint32], "
                "threads: int = 1) -> None"),
        "Fill row i of `rows` ([n, ceil(V / 32)] uint32) with the mask of matcher i, or set all its bits if the "
        "matcher is None. `threads` threads, at most 64, share the rows; this is faster from about a thousand rows. "
        "Releases the GIL.");
    m.def(
        "advance_and_fill",
        [](const nb::sequence& matchers, const Integers& given, const MaskRows& rows, unsigned threads) {
            const auto tokens = integers<std::int64_t>(given);
            std::vector<nb::object> held;
            const auto all = pointers<Matcher>(matchers, held);
            check_rows(rows, all.size());
            const InUse use(all);
            const nb::gil_scoped_release release;
            advance_and_fill(all, tokens, words(rows), rows.shape(1), threads);
        },
        nb::arg("matchers"), nb::arg("token_ids"), nb::arg("rows").noconvert(), nb::arg("threads") = 1u,
        nb::sig("def advance_and_fill(matchers: collections.abc.Sequence[Matcher | None], token_ids: collections.abc.Sequence[int], "
                "rows: numpy.typing.NDArray[numpy.uint32], threads: int = 1) -> None"),
        "Advance matcher i by token i and fill row i with its mask. If this raises, no matcher has changed. An error of a "
        "token, such as RejectedTokenError, names the row. Where the matcher is None, the token is ignored.");
    m.def(
        "only_token", [](const MaskRow& row) { return only_token(words(row)); }, nb::arg("row").noconvert(),
        "The only token that a row allows, or None if it allows none or several.");
    m.def(
        "mask_logits",
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
        "Copy `source` to `target` ([n, width] float32). In rows that are `held`, write -inf for each token that the "
        "mask ([n, words] uint32) forbids or does not cover. `target` is `source` or does not overlap it; the logits "
        "of a row are contiguous. Returns the held rows in which no legal token has a logit above -inf. Releases the "
        "GIL.");
}

}  // namespace guideway
