"""Documents and their resources: resolves `$ref`, anchors and `$dynamicRef`.

A resource is a document, or a schema with an identifier (`$id`). Its URI is the base of the references in it. The
caller supplies the documents, and the package contains the metaschemas. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from guideway.arguments import short_repr
from guideway.caching import cached
from guideway.errors import InvalidConstraintError, UnsupportedError
from guideway.frontends.json_schema.keywords import (
    DEFAULT_DIALECT,
    DIALECTS,
    SCHEMA_LISTS,
    SCHEMA_MAPS,
    SCHEMAS,
    Dialect,
    without_vocabularies,
)
from guideway.grammar.nodes import Origin
from guideway.jsontext.decoder import read_json
from guideway.jsontext.pointer import MISSING, child, pointer, shown, unescape

__all__ = ["Documents", "Resource", "simple_dialect"]


class Resource:
    """A document, or a schema with an identifier.

    Attributes:
        uri: The URI, resolved against the URI of the resource around it, without a fragment; "" for a main document
            without an identifier.
        root: The schema.
        place: Its JSON Pointer. In other documents than the main one, the URI and "#" come before it.
        dialect: Its dialect.
        anchors: For each anchor in the resource, the schema that has it, and its JSON Pointer.
        dynamic: The same for each `$dynamicAnchor`.
        recursive: Whether `$recursiveAnchor` is true in the root.
    """

    __slots__ = ("anchors", "dialect", "dynamic", "place", "recursive", "root", "scanned", "uri")

    def __init__(self, uri: str, root: object, place: str, dialect: Dialect) -> None:
        self.uri = uri
        self.root = root
        self.place = place
        self.dialect = dialect
        self.anchors: dict[str, tuple[object, str]] = {}
        self.dynamic: dict[str, tuple[object, str]] = {}
        self.recursive = isinstance(root, dict) and root.get("$recursiveAnchor") is True
        self.scanned = False


class Documents:
    """The main document, the documents that it may refer to, and the resources in them.

    Args:
        document: The main document.
        dialect: The dialect of documents without `$schema`; None: `DEFAULT_DIALECT`.
        supplied: Other documents by URI.
        nested_ids: Whether to search the main document for identifiers and anchors of subschemas.

    Attributes:
        resources: The resources by URI, as far as their documents were read.
        owners: The resources by the identity of their root schemas. The resources keep these schemas alive.
        unusual: The schemas that keyword_warnings.py checks.
        dynamic: Whether a document has `$dynamicAnchor`, or `$recursiveAnchor` with the value true.
        main: The resource of the main document.

    Raises:
        InvalidConstraintError: An identifier is not a URI reference, or `$schema` is not a string.
        UnsupportedError: `$schema` names an unknown dialect.
    """

    def __init__(
        self, document: object, dialect: Dialect | None, supplied: Mapping[str, object], nested_ids: bool
    ) -> None:
        self.supplied = {uri.rstrip("#"): value for uri, value in supplied.items()}
        self._default = dialect or DEFAULT_DIALECT
        self.resources: dict[str, Resource] = {}
        self.owners: dict[int, Resource] = {}
        self.unusual: list[tuple[dict[str, Any], Origin, Dialect]] = []
        self.dynamic = False
        self.main = self._enter("", document, "", nested_ids)

    # -- resources

    def _enter(self, uri: str, document: object, place: str, scan: bool) -> Resource:
        dialect = self._dialect(document, place, self._default)
        own = _id_of(document, dialect)
        base = _joined(uri, own, place)[0] if own else uri
        resource = Resource(base, document, place, dialect)
        self.resources.setdefault(uri, resource)
        self.resources[base] = resource
        if isinstance(document, dict):
            self.owners[id(document)] = resource
            if scan:
                self._scan(resource, document, place)
            self.dynamic = self.dynamic or resource.recursive
        return resource

    def _scan(self, resource: Resource, document: dict[str, object], place: str) -> None:
        """Store each subschema with an identifier as a resource, and each anchor in the resource that contains it.

        Only positions where a keyword allows schemas are searched.
        """
        todo: list[tuple[object, str, Resource]] = [(document, place, resource)]
        while todo:
            schema, at, home = todo.pop()
            if not isinstance(schema, dict):
                continue
            if schema is not home.root:
                home = self._nested(schema, at, home)
            self._name(schema, at, home)
            if home.dialect.ref_alone and "$ref" in schema and schema is not document:
                continue
            for name, value in schema.items():
                if name in SCHEMAS and isinstance(value, dict):
                    todo.append((value, pointer(at, name), home))
                elif name in SCHEMA_LISTS and isinstance(value, list):
                    todo += ((one, pointer(at, name, i), home) for i, one in enumerate(value))
                elif name in SCHEMA_MAPS and isinstance(value, dict):
                    todo += ((one, pointer(at, name, key), home) for key, one in value.items())

    def _nested(self, schema: dict[str, object], place: str, home: Resource) -> Resource:
        dialect = self._dialect(schema, place, home.dialect)
        own = _id_of(schema, dialect)
        if not own or own.startswith("#") or (dialect.ref_alone and "$ref" in schema):
            return home
        uri = _joined(home.uri, own, place)[0]
        made = Resource(uri, schema, place, dialect)
        self.resources.setdefault(uri, made)
        self.owners[id(schema)] = made
        self.dynamic = self.dynamic or made.recursive
        return made

    def _name(self, schema: dict[str, object], place: str, home: Resource) -> None:
        found = [schema.get("$anchor")] if home.dialect.anchors else []
        own = schema.get(home.dialect.id_keyword)
        if not home.dialect.anchors and isinstance(own, str) and "#" in own:
            found.append(own.partition("#")[2])
        if home.dialect.dynamic_refs and isinstance(name := schema.get("$dynamicAnchor"), str):
            found.append(name)
            home.dynamic[name] = (schema, place)
            self.dynamic = True
        for one in found:
            if isinstance(one, str) and one:
                home.anchors.setdefault(one, (schema, place))

    def _dialect(self, schema: object, place: str, outer: Dialect) -> Dialect:
        name = schema.get("$schema") if isinstance(schema, dict) else None
        if name is None:
            return outer
        at = pointer(place, "$schema")
        if not isinstance(name, str):
            raise InvalidConstraintError(f"at {shown(at)}: $schema must be a string", at)
        found = DIALECTS.get(name.partition("://")[2].rstrip("#"))
        if found is not None:
            return found
        meta = self.supplied.get(name.rstrip("#"))
        if isinstance(meta, dict):
            base = DIALECTS.get(str(meta.get("$schema")).partition("://")[2].rstrip("#"), outer)
            words = meta.get("$vocabulary")
            return without_vocabularies(base, words) if isinstance(words, dict) else base
        known = ", ".join(dict.fromkeys(dialect.name for dialect in DIALECTS.values()))
        raise UnsupportedError(
            f"at {shown(at)}: the dialect {short_repr(name)} is not supported; supported dialects: {known}", at
        )

    # -- references

    def resource(self, uri: str) -> Resource | None:
        """Return the resource of a URI, from the documents that were read, the supplied ones, and the metaschemas.

        None: there is no such document.
        """
        found = self.resources.get(uri)
        if found is None:
            document = self.supplied.get(uri)
            if document is None:
                document = _metaschema(uri)
            if document is not None:
                found = self._enter(uri, document, f"{uri}#", True)
        return found

    def resolve(self, reference: str, home: Resource, place: str) -> tuple[object, str, Resource]:
        """Resolve a reference.

        Args:
            reference: The value of `$ref` or `$dynamicRef`, or "#" for `$recursiveRef`.
            home: The resource that contains the reference.
            place: The JSON Pointer of the keyword, for errors.

        Returns:
            The target (a dict or a bool), its JSON Pointer, and its resource.

        Raises:
            UnsupportedError: The reference is to a document that was not supplied, or whose dialect is unknown.
            InvalidConstraintError: The reference is invalid, or its target does not exist or is not a schema.
        """
        uri, fragment = _joined(home.uri, reference, place) if not reference.startswith("#") else (None, reference[1:])
        resource = home if uri is None or uri == home.uri else self.resource(uri)
        if resource is None:
            raise UnsupportedError(
                f"the reference {short_repr(reference)} is to another document, and nothing is fetched; pass that document in resources=",
                place,
            )
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            named = resource.anchors.get(fragment)
            if named is None:
                raise InvalidConstraintError(
                    f"at {shown(place)}: the reference {short_repr(reference)} leads nowhere: there is no anchor {short_repr(fragment)}",
                    place,
                )
            return (*named, resource)
        return self._walk(resource, fragment, reference, place)

    def _walk(self, resource: Resource, fragment: str, reference: str, place: str) -> tuple[object, str, Resource]:
        found, target = resource.root, resource.place
        for part in fragment.split("/")[1:]:
            name = unescape(part)
            found = child(found, name)
            if found is MISSING:
                searched = short_repr(target or "the document")
                raise InvalidConstraintError(
                    f"at {shown(place)}: the reference {short_repr(reference)} leads nowhere: {searched} has no"
                    f" {short_repr(name)}",
                    place,
                )
            target = pointer(target, name)
            resource = self.owners.get(id(found), resource)
        if not isinstance(found, (dict, bool)):
            raise InvalidConstraintError(
                f"at {shown(place)}: the reference {short_repr(reference)} leads to a value that is not a schema (an object,"
                " true or false)",
                place,
            )
        return found, target, resource


def simple_dialect(document: object, given: Dialect | None) -> Dialect | None:
    """Return the dialect of a document if it can be found without the general path.

    Args:
        document: The document.
        given: The dialect of documents without `$schema`; None: `DEFAULT_DIALECT`.

    Returns:
        The dialect. None if the document is no dict, has a `$recursiveAnchor`, an identifier that may not be a URI, or
        a `$schema` that is not in `DIALECTS`.
    """
    if type(document) is not dict or "$recursiveAnchor" in document:
        return None
    for own in (document.get("$id"), document.get("id")):
        if type(own) is str and ("[" in own or "]" in own or not own.isascii()):
            return None  # possibly not a URI
    name = document.get("$schema")
    if name is None:
        return given or DEFAULT_DIALECT
    return DIALECTS.get(name.partition("://")[2].rstrip("#")) if type(name) is str else None


def _joined(base: str, reference: str, place: str) -> tuple[str, str]:
    """Resolve a URI reference against a base URI. Returns the URI without the fragment, and the fragment.

    Raises `InvalidConstraintError` if it is not a URI reference.
    """
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError as problem:  # invalid brackets in the host
        raise InvalidConstraintError(
            f"at {shown(place)}: {short_repr(reference)} is not a URI reference: {problem}", place
        ) from None
    return uri, fragment


def _id_of(schema: object, dialect: Dialect) -> str:
    own = schema.get(dialect.id_keyword) if isinstance(schema, dict) else None
    if not isinstance(own, str) or (dialect.ref_alone and isinstance(schema, dict) and "$ref" in schema):
        return ""
    return own


@cached(1)
def _metaschemas() -> dict[str, str]:
    """Return the file names of the metaschemas by URI."""
    folder = files(__package__).joinpath("metaschemas")
    listing = read_json(folder.joinpath("index.json").read_text("utf-8"))
    return {str(uri): str(name) for uri, name in listing.items()} if isinstance(listing, dict) else {}


def _metaschema(uri: str) -> object | None:
    name = _metaschemas().get(uri)
    if name is None:
        return None
    return read_json(files(__package__).joinpath("metaschemas").joinpath(name).read_text("utf-8"))
