// The part of the fast path of JSON Schema (fast_path.py) that most schemas use: it numbers schemas, and makes the nodes of
// objects, arrays, strings and listed strings. It is in C++ because each function of Python takes microseconds if its code is not
// in the processor's caches.
#include <utility>

#include "bindings.h"
#include "encode/writing.h"

namespace guideway {

namespace {

PyObject* checked(PyObject* made) {
    if (!made) throw nb::python_error();
    return made;
}

bool contains(nb::handle set, PyObject* item) {
    const int found = PySet_Contains(set.ptr(), item);
    if (found < 0) throw nb::python_error();
    return found == 1;
}

// Returns an invalid object if the key is missing.
nb::object item_of(nb::handle dict, PyObject* key) {
    PyObject* const known = PyDict_GetItemWithError(dict.ptr(), key);
    if (!known && PyErr_Occurred()) throw nb::python_error();
    return nb::borrow(known);
}

nb::object item_of(nb::handle dict, const nb::str& key) { return item_of(dict, key.ptr()); }

void set_item(const nb::dict& dict, nb::handle key, nb::handle value) {
    if (PyDict_SetItem(dict.ptr(), key.ptr(), value.ptr()) < 0) throw nb::python_error();
}

long as_number(nb::handle value) {
    const long made = PyLong_AsLong(value.ptr());
    if (made == -1 && PyErr_Occurred()) throw nb::python_error();
    return made;
}

// Returns the integer, or -1 if the value is no integer from 0 to `most`.
long as_bound(nb::handle value, long most) {
    int beyond = 0;
    if (!PyLong_CheckExact(value.ptr())) return -1;
    const long made = PyLong_AsLongAndOverflow(value.ptr(), &beyond);
    return beyond || made < 0 || made > most ? -1 : made;
}

bool is_subset(nb::handle set, nb::handle of) {
    const int found = PyObject_RichCompareBool(set.ptr(), of.ptr(), Py_LE);
    if (found < 0) throw nb::python_error();
    return found == 1;
}

nb::tuple as_tuple(nb::handle values) { return nb::steal<nb::tuple>(checked(PySequence_Tuple(values.ptr()))); }

constexpr long kNever = -1;  // instead of a node number: the same as `_NEVER` of fast_path.py
constexpr unsigned kCheckpointNodes = 64;

// The names of keywords, and of attributes of a `FastPath` and of its `SharedNodes`.
struct Names {
    nb::str ref{"$ref"}, type{"type"}, enumeration{"enum"};
    nb::str properties{"properties"}, required{"required"}, additional{"additionalProperties"}, min_properties{"minProperties"},
        max_properties{"maxProperties"}, pattern_properties{"patternProperties"};
    nb::str items{"items"}, min_items{"minItems"}, max_items{"maxItems"}, unique_items{"uniqueItems"}, additional_items{"additionalItems"};
    nb::str min_length{"minLength"}, max_length{"maxLength"};
    nb::str any_number{"any_number"}, add_anything{"add_anything"}, reference{"reference"}, open_entries{"open_entries"},
        refuse_nodes{"refuse_nodes"}, checkpoint{"checkpoint"}, define_generally{"define_generally"};
    nb::str string{"string"}, strings{"strings"};
};

// Makes nodes in one style.
class NodeMaker {
public:
    NodeMaker(const nb::tuple& classes, nb::frozenset words, nb::dict by_type, nb::object quote, nb::object spelling, nb::object new_key,
              nb::object brackets, nb::object braces, nb::object any_key, bool ordered, bool closed, std::size_t most_nodes,
              long most_entries, long most_types)
        : keywords(std::move(words)), keywords_of(std::move(by_type)), is_closed(closed), max_nodes(most_nodes), max_count(most_entries),
          max_types(most_types), kinds_(classes, leaf + 1), quote_(std::move(quote)), spelling_(std::move(spelling)),
          new_key_(std::move(new_key)), brackets_(std::move(brackets)), braces_(std::move(braces)), any_key_(std::move(any_key)),
          is_ordered_(ordered) {}

    const Names names;
    const nb::frozenset keywords;  // the names of the keywords that have an effect
    const nb::dict keywords_of;    // by type: the names of those that the fast path handles
    const bool is_closed;          // objects with `properties`, but without `additionalProperties`, have no other keys
    const std::size_t max_nodes;
    const long max_count;  // the maximum of `minProperties` and similar keywords
    const long max_types;  // the number of types of JSON values, where true and false are two

    nb::object key(nb::handle name, const nb::dict& keys) const {
        nb::object known = item_of(keys, name.ptr());
        if (known.is_valid()) return known;
        known = new_key_.is_none() ? quoted(texts(nb::make_tuple(name))) : new_key_(name);
        set_item(keys, name, known);
        return known;
    }

    // The entry of all keys that are not listed.
    nb::object open_entry(const nb::tuple& listed, nb::object value) const {
        if (!listed.size()) return entry(any_key_, std::move(value), false);
        const nb::object others = instance(complement);
        complement_.set(others, texts(listed));
        return entry(quoted(others), std::move(value), false);
    }

    nb::object entry(nb::object key, nb::object value, bool is_required) const {
        nb::object made = instance(property);
        key_.set(made, std::move(key));
        value_.set(made, std::move(value));
        required_.set(made, nb::bool_(is_required));
        missing_.set(made, zero_);
        return made;
    }

    nb::object object_node(nb::object entries, nb::object open, nb::object minimum, nb::object maximum) const {
        nb::object made = instance(object);
        punctuation_.set(made, braces_);
        properties_.set(made, std::move(entries));
        open_.set(made, std::move(open));
        ordered_.set(made, nb::bool_(is_ordered_));
        minimum_.set(made, std::move(minimum));
        maximum_.set(made, std::move(maximum));
        demands_.set(made, zero_);
        least_.set(made, nb::none());
        most_.set(made, nb::none());
        return made;
    }

    nb::object array_node(nb::object item, nb::object minimum, nb::object maximum, bool unique) const {
        nb::object made = instance(array);
        array_marks_.set(made, brackets_);
        prefix_.set(made, nb::tuple());
        rest_.set(made, std::move(item));
        fewest_.set(made, std::move(minimum));
        most_items_.set(made, std::move(maximum));
        unique_.set(made, nb::bool_(unique));
        counts_.set(made, nb::tuple());
        return made;
    }

    nb::object leaf_node(nb::object text) const {
        nb::object made = instance(leaf);
        text_.set(made, std::move(text));
        return made;
    }

    const nb::int_& zero() const { return zero_; }

private:
    enum Kind : std::size_t { object, property, concat, escaped, complement, literals, array, leaf };

    nb::object instance(Kind kind) const {
        auto* const type = reinterpret_cast<PyTypeObject*>(kinds_[kind].ptr());
        return nb::steal(checked(type->tp_alloc(type, 0)));
    }
    nb::object texts(const nb::tuple& strings) const {
        nb::object made = instance(literals);
        texts_.set(made, strings);
        return made;
    }
    // Makes the same expression as `SharedNodes.quoted`.
    nb::object quoted(const nb::object& language) const {
        const nb::object inside = instance(escaped);
        part_.set(inside, language);
        spelled_.set(inside, spelling_);
        nb::object made = instance(concat);
        parts_.set(made, nb::make_tuple(quote_, inside, quote_));
        return made;
    }

    Kinds kinds_;
    nb::object quote_, spelling_, new_key_, brackets_, braces_, any_key_;
    bool is_ordered_;
    nb::int_ zero_{0};
    Field punctuation_{kinds_[object], "punctuation"}, properties_{kinds_[object], "properties"}, open_{kinds_[object], "open"},
        ordered_{kinds_[object], "ordered"}, minimum_{kinds_[object], "minimum"}, maximum_{kinds_[object], "maximum"},
        demands_{kinds_[object], "demands"}, least_{kinds_[object], "least"}, most_{kinds_[object], "most"};
    Field key_{kinds_[property], "key"}, value_{kinds_[property], "value"}, required_{kinds_[property], "required"},
        missing_{kinds_[property], "missing"};
    Field parts_{kinds_[concat], "parts"}, part_{kinds_[escaped], "part"}, spelled_{kinds_[escaped], "spelling"},
        complement_{kinds_[complement], "part"}, texts_{kinds_[literals], "texts"};
    Field array_marks_{kinds_[array], "punctuation"}, prefix_{kinds_[array], "prefix"}, rest_{kinds_[array], "rest"},
        fewest_{kinds_[array], "minimum"}, most_items_{kinds_[array], "maximum"}, unique_{kinds_[array], "unique"},
        counts_{kinds_[array], "counts"}, text_{kinds_[leaf], "text"};
};

// The nodes of the schemas of one document. The `FastPath` owns this object and is an argument of each call (`owner`). No reference to
// it is stored, because that would be a cycle.
class DocumentNodes {
public:
    DocumentNodes(nb::object common, nb::frozenset plain, nb::object dialect, nb::dict scalars, nb::list nodes, nb::list places,
                  nb::dict numbers, nb::list todo, nb::list unusual)
        : common_(std::move(common)), held_(common_.attr("maker")), maker_(nb::cast<const NodeMaker&>(held_)), plain_(std::move(plain)),
          dialect_(std::move(dialect)), scalars_(std::move(scalars)), nodes_(std::move(nodes)), places_(std::move(places)),
          numbers_(std::move(numbers)), todo_(std::move(todo)), unusual_(std::move(unusual)) {}

    nb::object number_of(nb::handle owner, const nb::dict& schema, nb::object place) {
        const nb::object id = nb::steal(checked(PyLong_FromVoidPtr(schema.ptr())));
        if (nb::object known = item_of(numbers_, id.ptr()); known.is_valid()) return known;
        if (!schema.size()) return owner.attr(names_.any_number)();
        if (item_of(schema, names_.ref).is_valid())
            if (nb::object target = owner.attr(names_.reference)(schema, place); !target.is_none()) return target;
        return own_number(owner, schema, std::move(place));
    }

    nb::object own_number(nb::handle owner, const nb::dict& schema, nb::object place) {
        PyObject *name = nullptr, *value = nullptr;
        bool is_unusual = false;
        nb::object found = nb::steal(checked(PyFrozenSet_New(nullptr)));
        for (Py_ssize_t at = 0; PyDict_Next(schema.ptr(), &at, &name, &value);) {
            is_unusual |= !contains(plain_, name);
            if (contains(maker_.keywords, name) && PySet_Add(found.ptr(), name) < 0) throw nb::python_error();
        }
        if (is_unusual) unusual_.append(nb::make_tuple(schema, place, dialect_));
        nb::object made = PySet_GET_SIZE(found.ptr()) < 2 ? plain_number(owner, schema, found, place) : nb::object();
        if (!made.is_valid()) made = add(owner, nb::none(), schema, std::move(found), std::move(place));
        set_item(numbers_, nb::steal(checked(PyLong_FromVoidPtr(schema.ptr()))), made);
        return made;
    }

    // Returns None if the schema needs the general path.
    nb::object object(nb::handle owner, const nb::dict& schema, const nb::object& place, const nb::object& patterns) {
        nb::object properties = item_of(schema, names_.properties), required = item_of(schema, names_.required);
        const nb::object additional = item_of(schema, names_.additional);
        const bool lists_properties = properties.is_valid();
        if (!lists_properties) properties = nb::dict();
        if (!required.is_valid()) required = nb::list();
        if (!PyDict_CheckExact(properties.ptr()) || !PyList_CheckExact(required.ptr())) return nb::none();
        if (additional.is_valid() && !PyDict_CheckExact(additional.ptr()) && !PyBool_Check(additional.ptr())) return nb::none();
        nb::dict missing;  // its keys: required, but not in `properties`
        for (const nb::handle name : nb::borrow<nb::list>(required)) {
            if (!PyUnicode_CheckExact(name.ptr())) return nb::none();
            if (!item_of(properties, name.ptr()).is_valid()) set_item(missing, name, nb::none());
        }
        const nb::set needed = nb::steal<nb::set>(checked(PySet_New(required.ptr())));
        nb::object minimum = maker_.zero(), maximum = nb::none();
        long most = 0;
        if (!read_bounds(schema, names_.min_properties, names_.max_properties, minimum, maximum, most)) return nb::none();
        if (static_cast<std::size_t>(most) < needed.size()) return nb::none();

        nb::object entries = entries_of(owner, nb::borrow<nb::dict>(properties), needed, place);
        if (entries.is_none()) return entries;
        const bool is_closed = maker_.is_closed && lists_properties && !additional.is_valid();
        nb::object others = nb::int_(kNever);
        if (additional.is_valid() && PyDict_CheckExact(additional.ptr()))
            others = number_of(owner, nb::borrow<nb::dict>(additional), nb::make_tuple(place, names_.additional));
        else if (additional.is_valid() ? additional.is(Py_True) : !is_closed || missing.size()) others = owner.attr(names_.any_number)();
        const bool has_others = as_number(others) != kNever;
        if (missing.size() && !has_others) return nb::none();
        for (const auto [name, _] : missing) nb::borrow<nb::list>(entries).append(maker_.entry(maker_.key(name, keys_), others, true));

        nb::object open = nb::tuple();
        nb::tuple names = as_tuple(properties);
        if (missing.size()) names = nb::borrow<nb::tuple>(names + as_tuple(missing));
        if (!patterns.is_none()) open = owner.attr(names_.open_entries)(patterns, names, is_closed ? nb::object(nb::int_(kNever)) : others);
        else if (has_others && !is_closed) open = nb::make_tuple(maker_.open_entry(names, others));
        return maker_.object_node(as_tuple(entries), std::move(open), std::move(minimum), std::move(maximum));
    }

    // Returns None if the schema needs the general path.
    nb::object array(nb::handle owner, const nb::dict& schema, const nb::object& place) {
        nb::object minimum = maker_.zero(), maximum = nb::none();
        long most = 0;
        if (!read_bounds(schema, names_.min_items, names_.max_items, minimum, maximum, most) || most == 0) return nb::none();
        const nb::object items = item_of(schema, names_.items), additional = item_of(schema, names_.additional_items);
        if (additional.is_valid() && !PyDict_CheckExact(additional.ptr()) && !PyBool_Check(additional.ptr())) return nb::none();
        const nb::object unique = item_of(schema, names_.unique_items);
        const bool is_unique = unique.is_valid() && !unique.is(Py_False);
        if (is_unique && (!unique.is(Py_True) || most <= maker_.max_types)) return nb::none();
        nb::object item;
        if (!items.is_valid() || items.is(Py_True)) item = owner.attr(names_.any_number)();
        else if (PyDict_CheckExact(items.ptr())) item = number_of(owner, nb::borrow<nb::dict>(items), nb::make_tuple(place, names_.items));
        else return nb::none();
        if (as_number(item) == kNever) return nb::none();
        return maker_.array_node(std::move(item), std::move(minimum), std::move(maximum), is_unique);
    }

    // Returns None if the schema needs the general path, which also raises its errors.
    nb::object string(const nb::dict& schema) const {
        nb::object minimum = maker_.zero(), maximum = nb::none();
        long most = 0;
        if (!read_bounds(schema, names_.min_length, names_.max_length, minimum, maximum, most)) return nb::none();
        nb::list tests;
        PyObject *name = nullptr, *value = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(schema.ptr(), &at, &name, &value);) {
            if (!is_text(name, "pattern") && !is_text(name, "format")) continue;
            if (!PyUnicode_CheckExact(value)) return nb::none();
            tests.append(nb::make_tuple(nb::handle(name), nb::handle(value)));
        }
        try {
            return common_.attr(names_.string)(minimum, maximum, as_tuple(tests));
        } catch (nb::python_error& error) {
            if (!error.matches(nb::module_::import_("guideway.errors").attr("ConstraintError"))) throw;
            return nb::none();
        }
    }

    // Completes nodes of the worklist, from its end. Returns the first entry that it cannot complete; None: the worklist is empty.
    nb::object complete(nb::handle owner) {
        for (unsigned done = 1; todo_.size(); ++done) {
            if (done % kCheckpointNodes == 0) owner.attr(names_.checkpoint)();
            const Py_ssize_t last = PyList_GET_SIZE(todo_.ptr()) - 1;
            nb::object entry = nb::borrow(PyList_GET_ITEM(todo_.ptr(), last));
            if (PyList_SetSlice(todo_.ptr(), last, last + 1, nullptr) < 0) throw nb::python_error();
            const nb::object number = entry[0], schema = entry[1], keywords = entry[2];
            if (!PyDict_CheckExact(schema.ptr())) return entry;
            PyObject* const place = PyList_GetItem(places_.ptr(), as_number(number));
            if (!place) throw nb::python_error();
            nb::object node = simple_node(owner, nb::borrow<nb::dict>(schema), keywords, nb::borrow(place));
            if (!node.is_valid()) return entry;
            if (node.is_none()) owner.attr(names_.define_generally)(number, schema);
            else if (PyList_SetItem(nodes_.ptr(), as_number(number), node.release().ptr()) < 0) throw nb::python_error();
        }
        return nb::none();
    }

private:
    // Returns the node of a schema with these keywords. None: the schema needs the general path; an invalid object: the caller must find
    // the node.
    nb::object simple_node(nb::handle owner, const nb::dict& schema, const nb::object& keywords, const nb::object& place) {
        const nb::object type = item_of(schema, names_.type);
        if (!type.is_valid() || !PyUnicode_CheckExact(type.ptr())) return {};
        const nb::object handled = item_of(maker_.keywords_of, type.ptr());
        if (!handled.is_valid()) return {};
        if (!is_subset(keywords, handled)) return listed_strings(schema, keywords, type);
        if (is_text(type.ptr(), "object"))
            return item_of(schema, names_.pattern_properties).is_valid() ? nb::object() : object(owner, schema, place, nb::none());
        if (is_text(type.ptr(), "array")) return array(owner, schema, place);
        return is_text(type.ptr(), "string") ? string(schema) : nb::object();
    }

    // Returns an invalid object if the schema has not only the type "string" and a list of strings.
    nb::object listed_strings(const nb::dict& schema, const nb::object& keywords, const nb::object& type) const {
        const nb::object listed = item_of(schema, names_.enumeration);
        if (PySet_GET_SIZE(keywords.ptr()) != 2 || !is_text(type.ptr(), "string") || !listed.is_valid()) return {};
        if (!PyList_CheckExact(listed.ptr()) || PyList_GET_SIZE(listed.ptr()) == 0) return {};
        nb::dict texts;  // without repetitions
        for (const nb::handle text : nb::borrow<nb::list>(listed)) {
            if (!PyUnicode_CheckExact(text.ptr())) return {};
            set_item(texts, text, nb::none());
        }
        return maker_.leaf_node(common_.attr(names_.strings)(as_tuple(texts)));
    }

    // Adds a node. None only reserves its number, and adds the schema to the worklist.
    nb::object add(nb::handle owner, nb::object node, const nb::dict& schema, nb::object keywords, nb::object place) {
        nb::object made = nb::int_(nodes_.size());
        if (nodes_.size() > maker_.max_nodes) owner.attr(names_.refuse_nodes)(place);
        if (node.is_none()) todo_.append(nb::make_tuple(made, schema, keywords));
        nodes_.append(std::move(node));
        places_.append(std::move(place));
        return made;
    }

    // Returns the number of the node of a schema without keywords, or with `type` and one name as its only keyword. Returns an invalid
    // object for other schemas. `keywords` has at most one name.
    nb::object plain_number(nb::handle owner, const nb::dict& schema, const nb::object& keywords, const nb::object& place) {
        nb::object type = nb::none(), node;
        if (PySet_GET_SIZE(keywords.ptr())) {
            type = item_of(schema, names_.type);
            if (type.is_valid() && PyUnicode_CheckExact(type.ptr())) node = item_of(scalars_, type.ptr());
            if (!node.is_valid()) return node;
        }
        nb::object known = item_of(types_, type.ptr());
        if (known.is_valid()) return known;
        known = node.is_valid() ? add(owner, std::move(node), schema, keywords, place) : owner.attr(names_.add_anything)(place);
        set_item(types_, type, known);
        return known;
    }

    // Returns false if the bounds with these names are invalid. Sets them where the schema has them, and `most` to the maximum.
    bool read_bounds(const nb::dict& schema, const nb::str& lower, const nb::str& upper, nb::object& minimum, nb::object& maximum,
                     long& most) const {
        const nb::object low = item_of(schema, lower), high = item_of(schema, upper);
        most = high.is_valid() ? as_bound(high, maker_.max_count) : maker_.max_count;
        if (most < 0 || (low.is_valid() && as_bound(low, most) < 0)) return false;
        if (low.is_valid()) minimum = low;
        if (high.is_valid()) maximum = high;
        return true;
    }

    // Returns None if a required property has no value, or if a value is no schema.
    nb::object entries_of(nb::handle owner, const nb::dict& properties, const nb::set& required, const nb::object& place) {
        nb::list made;
        PyObject *name = nullptr, *schema = nullptr;
        for (Py_ssize_t at = 0; PyDict_Next(properties.ptr(), &at, &name, &schema);) {
            const nb::object held = nb::borrow(name);
            nb::object value = number_of_type(schema);
            if (!value.is_valid()) value = number_of_value(owner, schema, place, held);
            if (value.is_none()) return value;
            const bool is_required = contains(required, name);
            if (as_number(value) == kNever) {
                if (is_required) return nb::none();
                continue;
            }
            made.append(maker_.entry(maker_.key(held, keys_), std::move(value), is_required));
        }
        return made;
    }

    // Returns None if the value is no schema.
    nb::object number_of_value(nb::handle owner, PyObject* schema, const nb::object& place, const nb::object& name) {
        if (PyDict_CheckExact(schema))
            return number_of(owner, nb::borrow<nb::dict>(schema), nb::make_tuple(place, names_.properties, name));
        if (schema == Py_True) return owner.attr(names_.any_number)();
        return schema == Py_False ? nb::object(nb::int_(kNever)) : nb::none();
    }

    // Returns the node of a schema without keywords, or with `type` as its only keyword. Returns an invalid object for other
    // schemas, for an empty dict, and if `types_` has no such node.
    nb::object number_of_type(PyObject* schema) const {
        PyObject *name = nullptr, *value = nullptr, *type = Py_None;
        if (!PyDict_CheckExact(schema) || PyDict_GET_SIZE(schema) == 0) return {};
        for (Py_ssize_t at = 0; PyDict_Next(schema, &at, &name, &value);) {
            if (!contains(plain_, name)) return {};
            if (!contains(maker_.keywords, name)) continue;
            if (type != Py_None || !PyUnicode_CheckExact(value) || !is_text(name, "type")) return {};
            type = value;
        }
        return item_of(types_, type);
    }

    nb::object common_, held_;
    const NodeMaker& maker_;
    const Names& names_ = maker_.names;
    nb::frozenset plain_;
    nb::object dialect_;
    nb::dict scalars_;
    nb::list nodes_, places_;
    nb::dict numbers_, types_, keys_;
    nb::list todo_, unusual_;
};

}  // namespace

void bind_schema_nodes(nb::module_& m) {
    nb::class_<NodeMaker>(m, "NodeMaker", "Makes nodes in one style; see `guideway.frontends.json_schema.fast_path`.")
        .def(
            nb::init<nb::tuple, nb::frozenset, nb::dict, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, bool, bool,
                     std::size_t, long, long>(),
            nb::arg("classes"), nb::arg("keywords"), nb::arg("keywords_of"), nb::arg("quote"), nb::arg("spelling"),
            nb::arg("new_key").none(), nb::arg("brackets"), nb::arg("braces"), nb::arg("any_key"), nb::arg("ordered"), nb::arg("closed"),
            nb::arg("max_nodes"), nb::arg("max_count"), nb::arg("max_types"),
            nb::sig(
                "def __init__(self, classes: tuple[type, ...], keywords: frozenset[str], keywords_of: dict[str, frozenset[str]], "
                "quote: object, spelling: str, new_key: collections.abc.Callable[[str], object] | None, brackets: object, braces: object, "
                "any_key: object, ordered: bool, closed: bool, max_nodes: int, max_count: int, max_types: int) -> None"),
            "classes: Object, Property, Concat, JsonEscaped, Complement, Literals, Array and Leaf. keywords: the names of the keywords that "
            "have an effect. keywords_of: by type, the names of the keywords that the fast path handles. quote: the expression of a "
            "quotation mark. spelling: the spelling of keys. new_key: returns the expression of a key. If it is None, keys are escaped and "
            "quoted with `spelling` and `quote`. brackets, braces: the punctuation of arrays and of objects. any_key: the expression of all "
            "keys. ordered: whether entries have the order of the schema. closed: whether objects with `properties`, but without "
            "`additionalProperties`, have no other keys. max_nodes: the maximum number of nodes. max_count: the maximum of `minProperties` "
            "and similar keywords. max_types: the number of types of JSON values, where true and false are two.");
    nb::class_<DocumentNodes>(m, "DocumentNodes", "Numbers the schemas of one document, and makes the nodes of most.")
        .def(
            nb::init<nb::object, nb::frozenset, nb::object, nb::dict, nb::list, nb::list, nb::dict, nb::list, nb::list>(),
            nb::arg("common"), nb::arg("plain"), nb::arg("dialect"), nb::arg("scalars"), nb::arg("nodes"), nb::arg("places"),
            nb::arg("numbers"), nb::arg("todo"), nb::arg("unusual"),
            nb::sig(
                "def __init__(self, common: typing.Any, plain: frozenset[str], dialect: object, scalars: dict[str, typing.Any], nodes: list[typing.Any], "
                "places: list[typing.Any], numbers: dict[int, int], todo: list[typing.Any], "
                "unusual: list[typing.Any]) -> None"),
            "All arguments except `common`, the `SharedNodes`, belong to a `FastPath`. The lists and `numbers` are modified. plain: names "
            "that need no check for misspelt keywords. scalars: by type, the node of a schema whose only keyword is `type`; None: the type "
            "is no scalar.")
        .def("number_of", &DocumentNodes::number_of, nb::arg("fast_path"), nb::arg("schema"), nb::arg("place").none(),
             nb::sig("def number_of(self, fast_path: typing.Any, schema: dict[str, typing.Any], place: typing.Any) -> int"),
             "Return the number of the node of a schema. -1 if its `$ref` leads to `false`, or cannot be resolved.")
        .def(
            "own_number", &DocumentNodes::own_number, nb::arg("fast_path"), nb::arg("schema"), nb::arg("place").none(),
            nb::sig("def own_number(self, fast_path: typing.Any, schema: dict[str, typing.Any], place: typing.Any) -> int"),
            "Return the number of the node of a schema that is not in `numbers`, and that is not only a reference. Schemas without keywords "
            "share a node, and schemas with only the same `type`. A node that is not complete yet is added to the worklist.")
        .def(
            "object", &DocumentNodes::object, nb::arg("fast_path"), nb::arg("schema"), nb::arg("place").none(), nb::arg("patterns").none(),
            nb::sig(
                "def object(self, fast_path: typing.Any, schema: dict[str, typing.Any], place: typing.Any, patterns: object) -> typing.Any"),
            "Make the node of the objects that a schema allows. Returns None if the schema needs the general path. patterns: the result of "
            "`FastPath._patterns`; None without `patternProperties`.")
        .def("array", &DocumentNodes::array, nb::arg("fast_path"), nb::arg("schema"), nb::arg("place").none(),
             nb::sig("def array(self, fast_path: typing.Any, schema: dict[str, typing.Any], place: typing.Any) -> typing.Any"),
             "Make the node of the arrays that a schema allows. Returns None if the schema needs the general path.")
        .def(
            "string", &DocumentNodes::string, nb::arg("schema"), nb::sig("def string(self, schema: dict[str, typing.Any]) -> typing.Any"),
            "Make the node of the strings that a schema allows. Returns None if the schema needs the general path, which raises its errors.")
        .def("complete", &DocumentNodes::complete, nb::arg("fast_path"),
             nb::sig("def complete(self, fast_path: typing.Any) -> tuple[int, typing.Any, typing.Any] | None"),
             "Complete nodes of the worklist, from its end: objects without `patternProperties`, arrays, strings, and lists of strings. "
             "Returns the first entry that it cannot complete, which is removed from the worklist. None: the worklist is empty.");
}

}  // namespace guideway
