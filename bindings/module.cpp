// The Python module guideway._kernel: a table of contents. Each bind_*.cpp binds one subject and holds no logic.
#include "bindings.h"

NB_MODULE(_kernel, m) {
    m.doc() = "The kernel: vocabularies, automata, matchers and token masks.";
    guideway::bind_errors(m);
    guideway::bind_vocabulary(m);
    guideway::bind_matcher(m);
    guideway::bind_masks(m);
}
