"""Parser of Lark's notation. It produces rules.

statements.py        rules, terminals, directives
terminals.py         the languages of terminals
definitions.py       terminals by name, templates
ignored_text.py      ignored text before each terminal
common.py            the library `common`
contextual.py        rules for the contextual lexer
contextual_lexer/    the contextual lexer as rules over texts
"""
