// The Python module guideway._kernel. Each bind_*.cpp binds one subject; encode/ turns the Python objects of a grammar into
// a program.
#include "bindings.h"

NB_MODULE(_kernel, m) {
    m.doc() = "The kernel: vocabularies, automata, matchers and token masks.";
    // Module globals keep models and the cache of automata until the interpreter ends: nanobind must not report them as leaks.
    nanobind::set_leak_warnings(false);
    guideway::find_numpy_array();
    guideway::bind_errors(m);
    guideway::bind_vocabulary(m);
    guideway::bind_matcher(m);
    guideway::bind_masks(m);
    guideway::bind_loop(m);
    guideway::bind_sample(m);
    guideway::bind_program(m);
    guideway::bind_plain(m);
    guideway::bind_schema_nodes(m);
}
