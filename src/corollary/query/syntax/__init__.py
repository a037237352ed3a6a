"""SPARQL 1.1 Query: text to algebra, by recursive descent.

Each layer of the grammar is a class of its own: `tokens` (the lexer and its cursor), `terms`,
`triples` (triple patterns and property paths), `expressions`, `patterns` (groups), and `queries`
(query forms and solution modifiers). The parser builds the algebra of the standard (section 18.2)
while it reads, and checks the rules of the grammar's notes as it goes: which variables are in
scope, and where blank node labels and aggregates may occur.
"""
