// The Python module guideway._kernel: a table of contents. Each bind_*.cpp binds one class and holds no logic.
#include <nanobind/nanobind.h>

NB_MODULE(_kernel, m) { m.doc() = "The kernel: vocabularies, automata, matchers and token masks."; }
