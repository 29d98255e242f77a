#include "bindings.h"
#include "encode/writing.h"

namespace guideway {

void bind_program(nb::module_& m) {
    nb::class_<ProgramWriter>(m, "ProgramWriter", "Writes grammars as programs; see `guideway.grammar.program`.")
        .def(nb::init<nb::tuple, nb::tuple>(), nb::arg("nodes"), nb::arg("expressions"),
             nb::sig("def __init__(self, nodes: tuple[type, ...], expressions: tuple[type, ...]) -> None"),
             "nodes: the classes of nodes and of their parts. expressions: the classes of expressions. Each in the order of "
             "their numbers in a program.")
        .def("write", &ProgramWriter::write, nb::arg("nodes"), nb::arg("root"), nb::arg("first"),
             nb::sig("def write(self, nodes: Sequence[object], root: int, first: tuple[object, ...]) -> bytes"),
             "Encode a grammar as a program: little-endian words. nodes: a list. first: expressions to write before all "
             "others.")
        .def("share", &ProgramWriter::share, nb::arg("expression"), "Write this expression as one block of words from now on.");
}

}  // namespace guideway
