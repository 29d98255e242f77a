// Makes the entries of an object from its `properties`: the innermost loop of the fast path of JSON Schema (fast_path.py).
// Most properties have a schema that names one type. Their entries are made here, without a call of Python code.
#include "bindings.h"
#include "encode/writing.h"

namespace guideway {

namespace {

class EntryMaker {
public:
    EntryMaker(const nb::tuple& classes, nb::object quote, nb::object spelling, nb::object new_key, nb::frozenset keywords)
        : kinds_(classes, literals + 1), quote_(std::move(quote)), spelling_(std::move(spelling)), new_key_(std::move(new_key)),
          keywords_(std::move(keywords)) {}

    // Returns None if a required property has no value, or if `number` returned None.
    nb::object entries(const nb::dict& properties, const nb::set& required, const nb::dict& types, const nb::dict& keys,
                       const nb::frozenset& plain, const nb::callable& number, nb::handle place) const {
        nb::list made;
        PyObject *name = nullptr, *schema = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(properties.ptr(), &at, &name, &schema);) {
            const nb::object held = nb::borrow(name);
            nb::object value = number_of_type(schema, types, plain);
            if (!value.is_valid())
                value = number(nb::handle(schema), nb::steal(checked(PyTuple_Pack(3, place.ptr(), properties_.ptr(), name))));
            if (value.is_none()) return value;
            const bool is_required = contains(required, name);
            if (as_number(value) < 0) {
                if (is_required) return nb::none();
                continue;
            }
            made.append(entry(key(name, keys), value, is_required));
        }
        return made;
    }

private:
    enum Kind : std::size_t { property, concat, escaped, literals };

    static PyObject* checked(PyObject* made) {
        if (!made) throw nb::python_error();
        return made;
    }
    static bool contains(nb::handle set, PyObject* item) {
        const int found = PySet_Contains(set.ptr(), item);
        if (found < 0) throw nb::python_error();
        return found == 1;
    }
    static long as_number(const nb::object& value) {
        const long made = PyLong_AsLong(value.ptr());
        if (made == -1 && PyErr_Occurred()) throw nb::python_error();
        return made;
    }
    // Returns an invalid object if the key is missing.
    static nb::object found(const nb::dict& in, PyObject* key) {
        PyObject* const known = PyDict_GetItemWithError(in.ptr(), key);
        if (!known && PyErr_Occurred()) throw nb::python_error();
        return nb::borrow(known);
    }
    nb::object instance(Kind kind) const {
        auto* const type = reinterpret_cast<PyTypeObject*>(kinds_[kind].ptr());
        return nb::steal(checked(type->tp_alloc(type, 0)));
    }

    // Returns the node of a schema without keywords, or with `type` as its only keyword. Returns an invalid object for other
    // schemas, for an empty dict, and if `types` has no such node.
    nb::object number_of_type(PyObject* schema, const nb::dict& types, const nb::frozenset& plain) const {
        PyObject *name = nullptr, *value = nullptr, *type = Py_None;
        if (!PyDict_CheckExact(schema) || PyDict_GET_SIZE(schema) == 0) return {};
        for (Py_ssize_t at = 0; PyDict_Next(schema, &at, &name, &value);) {
            if (!contains(plain, name)) return {};
            if (!contains(keywords_, name)) continue;
            if (type != Py_None || !PyUnicode_CheckExact(value) || !is_text(name, "type")) return {};
            type = value;
        }
        return found(types, type);
    }

    nb::object key(PyObject* name, const nb::dict& keys) const {
        nb::object known = found(keys, name);
        if (known.is_valid()) return known;
        known = new_key_.is_none() ? quoted(name) : new_key_(nb::handle(name));
        if (PyDict_SetItem(keys.ptr(), name, known.ptr()) < 0) throw nb::python_error();
        return known;
    }

    // Makes the same expression as `SharedNodes.quoted`.
    nb::object quoted(PyObject* name) const {
        const nb::object text = instance(literals), inside = instance(escaped);
        texts_.set(text, nb::make_tuple(nb::handle(name)));
        part_.set(inside, text);
        spelled_.set(inside, spelling_);
        nb::object made = instance(concat);
        parts_.set(made, nb::make_tuple(quote_, inside, quote_));
        return made;
    }

    nb::object entry(nb::object key, nb::object value, bool is_required) const {
        nb::object made = instance(property);
        key_.set(made, std::move(key));
        value_.set(made, std::move(value));
        required_.set(made, nb::bool_(is_required));
        missing_.set(made, none_missing_);
        return made;
    }

    Kinds kinds_;
    nb::object quote_, spelling_, new_key_;
    nb::frozenset keywords_;
    nb::str properties_{"properties"};
    nb::int_ none_missing_{0};
    Field key_{kinds_[property], "key"}, value_{kinds_[property], "value"}, required_{kinds_[property], "required"},
        missing_{kinds_[property], "missing"};
    Field parts_{kinds_[concat], "parts"}, part_{kinds_[escaped], "part"}, spelled_{kinds_[escaped], "spelling"},
        texts_{kinds_[literals], "texts"};
};

}  // namespace

void bind_entries(nb::module_& m) {
    nb::class_<EntryMaker>(m, "EntryMaker", "Makes the entries of objects; see `guideway.frontends.json_schema.fast_path`.")
        .def(
            nb::init<nb::tuple, nb::object, nb::object, nb::object, nb::frozenset>(), nb::arg("classes"), nb::arg("quote"),
            nb::arg("spelling"), nb::arg("new_key").none(), nb::arg("keywords"),
            nb::sig(
                "def __init__(self, classes: tuple[type, type, type, type], quote: object, spelling: str, new_key: collections.abc.Callable[[str], object] | None, "
                "keywords: frozenset[str]) -> None"),
            "classes: Property, Concat, JsonEscaped and Literals. quote: the expression of a quotation mark. spelling: the spelling of "
            "keys. new_key: returns the expression of a key. If it is None, keys are escaped and quoted with `spelling` and `quote`. "
            "keywords: the names of the keywords that have an effect.")
        .def(
            "entries", &EntryMaker::entries, nb::arg("properties"), nb::arg("required"), nb::arg("types"), nb::arg("keys"),
            nb::arg("plain"), nb::arg("number"), nb::arg("place").none(),
            nb::sig(
                "def entries(self, properties: dict[str, object], required: set[str], types: dict[str | None, int], keys: dict[str, typing.Any], "
                "plain: frozenset[str], number: collections.abc.Callable[[object, tuple[object, str, str]], int | None], place: object) -> list[typing.Any] | None"),
            "Make the entries of the properties that have a value. Returns None if a required property has no value, or if `number` "
            "returned None.\n\n"
            "Args:\n"
            "    properties: Schemas by key.\n"
            "    required: The required keys.\n"
            "    types: By type, the node number of a schema whose only keyword is `type`. By None, that of a schema without keywords.\n"
            "    keys: The expressions of keys. New ones are added.\n"
            "    plain: Names that need no check for misspelt keywords.\n"
            "    number: Called with another schema and its place. Returns its node number, -1 if it has no value, or None to give up.\n"
            "    place: The place of the object.");
}

}  // namespace guideway
