"""Frontends: compilers from notations to the grammar. They do not import `guideway.constraints`.

regex/         regular expressions of Python and ECMA-262
json_schema/   JSON Schema, all drafts from 4 on
cfg/           context-free grammars: GBNF, EBNF, Lark
python_types/  what JSON Schema cannot say about Python types
formats/       named string formats
"""
