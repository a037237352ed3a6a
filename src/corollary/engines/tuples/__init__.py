"""Rules evaluated tuple at a time, in compiled code over hash indexes.

The columnar engine evaluates a rule over whole relations: a rule costs tens of microseconds even
if it has nothing to do, and a million facts cost little more. An ontology is the opposite case:
hundreds of rules over thousands of relations with a few facts each, and changes of a few triples.
Here one interpreter, compiled once, matches each new fact with the atoms that it can unify with
(`kernel`). The original rules are arrays of numbers (`program`); nothing is specialized.
`index` owns the arrays, and `reasoning.tuples` maintains a materialization with them.
"""
