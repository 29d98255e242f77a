"""Parser of Lark's notation. It produces rules.

statements.py        the parser: rules, templates, terminals, directives
terminals.py         patterns of terminals and their languages
definitions.py       terminals by name, with references to other terminals resolved
longest_match.py     languages whose longest match is the match of a pattern in Python's `re`
ignored_text.py      the ignored text that the dynamic lexer allows before each terminal
common.py            the terminals of the library `common`
contextual.py        prepares a grammar for the contextual lexer
contextual_lexer/    the contextual lexer, expressed as context-free rules over texts
"""
