"""Write SQL of a fixed subset for known tables, with a Lark grammar: python examples/04_sql_grammar.py [MODEL]."""

import sqlite3
import sys

import guideway as gw

GRAMMAR = r"""
start: "SELECT " columns " FROM " table [" WHERE " condition] [" LIMIT " NUMBER] ";"
columns: "*" | column (", " column)*
condition: comparison ((" AND " | " OR ") comparison)*
comparison: column OPERATOR value
value: NUMBER | TEXT
table: "orders"
column: "id" | "customer" | "total" | "city"
OPERATOR: " = " | " < " | " > " | " LIKE "
NUMBER: /[1-9][0-9]{0,4}/
TEXT: /'[A-Za-z ]{1,20}'/
"""


def main(name: str = "tiny") -> str:
    model = gw.load(name)
    prompt = "Table: orders(id, customer, total, city)\nQuestion: Which orders are from Rome?\nSQL: "
    query = gw.generate(model, prompt, gw.Lark(GRAMMAR), max_tokens=48)
    print(query)

    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE orders (id, customer, total, city)")
    database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", [(1, "Ada", 30, "Rome"), (2, "Alan", 12, "Oslo")])
    print(database.execute(query).fetchall())  # every query of the grammar is valid here
    return query


if __name__ == "__main__":
    main(*sys.argv[1:])
