"""The vocabulary of questions: filters, predicates, the query AST, and what they mean."""
