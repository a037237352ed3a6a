"""SPARQL 1.1 queries and updates: text to algebra, by recursive descent.

Each layer of the grammar is a class of its own: `tokens` (the lexer and its cursor), `terms`,
`triples` (triple patterns and property paths), `expressions`, `patterns` (groups), `queries` (query
forms and solution modifiers), and `updates` (update requests).
The parser builds the algebra of the standard (section 18.2) while it reads, and checks the rules of
the grammar's notes as it goes: which variables are in scope, and where blank node labels and
aggregates may occur.
"""
