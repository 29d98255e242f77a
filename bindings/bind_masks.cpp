#include <vector>

#include "bindings.h"
#include "guideway/error.h"
#include "guideway/masks.h"
#include "guideway/matcher.h"

namespace guideway {

namespace {

using Logits = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void fill_masks(const std::vector<const Matcher*>& matchers, const MaskRows& rows) {
    if (rows.shape(0) != matchers.size()) {
        const std::string given = std::to_string(matchers.size()), there = std::to_string(rows.shape(0));
        throw Error(ErrorKind::argument, "there are " + given + " matchers, but " + there + " rows");
    }
    const std::size_t width = rows.shape(1);
    std::size_t size = width * 32;
    for (const Matcher* m : matchers)
        if (m) size = m->automaton().vocabulary().size();
    for (const Matcher* m : matchers)
        if (m && m->automaton().vocabulary().words() != width) {
            const std::string needed = std::to_string(m->automaton().vocabulary().words()), given = std::to_string(width);
            throw Error(ErrorKind::argument, "a mask row has " + needed + " words for this vocabulary, not " + given);
        }
    const nb::gil_scoped_release release;
    for (std::size_t i = 0; i < matchers.size(); ++i) {
        const std::span<std::uint32_t> row{rows.data() + i * width, width};
        if (matchers[i]) matchers[i]->fill_mask(row);
        else allow_all(row, size);
    }
}

}  // namespace

void bind_masks(nb::module_& m) {
    m.def("fill_masks",
          [](const nb::sequence& matchers, const MaskRows& rows) {
              std::vector<const Matcher*> pointers;
              std::vector<nb::object> held;  // the sequence may make its items as they are asked for
              for (nb::handle h : matchers) {
                  held.push_back(nb::borrow(h));
                  pointers.push_back(h.is_none() ? nullptr : nb::cast<const Matcher*>(h));
              }
              fill_masks(pointers, rows);
          },
          nb::arg("matchers"), nb::arg("rows").noconvert(),  // a converted copy would be filled, and thrown away
          nb::sig("def fill_masks(matchers: collections.abc.Sequence[Matcher | None], rows: numpy.typing.NDArray[numpy.uint32]) -> None"),
          "fill_mask for a batch: row i of `rows` ([n, ceil(V / 32)] uint32) is matcher i's mask; None: every bit set. The GIL is released.");
    m.def("apply_mask", [](const Logits& logits, const MaskRow& row) { apply_mask({logits.data(), logits.size()}, words(row)); },
          nb::arg("logits").noconvert(), nb::arg("row").noconvert(),
          "Set the float32 logits of tokens that the mask does not allow to -inf, in place; those beyond the mask too.");
}

}  // namespace guideway
