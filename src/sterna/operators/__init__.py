"""The stateful operators: aggregate, state machine, unary and binary folds."""
