"""Frontends: compilers from notations to the grammar. They do not import the classes of `guideway.constraints`.

regex/         regular expressions of Python and ECMA-262
json_schema/   JSON Schema, all drafts from 4 on
cfg/           context-free grammars: GBNF, EBNF, Lark
python_types/  JSON Schemas of Python types, with restrictions that Pydantic's schemas omit
formats/       named string formats
"""
