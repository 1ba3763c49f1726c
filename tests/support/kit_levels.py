"""The levels of the conformance kit that a plain run of the tests leaves out."""

# They take the interpreter longest. `pytest --part 24` and `nox -s kit` run samples of all levels.
QUICK_LEVELS = ("-k", "not (table or fusion or gradients or sparse or convolutions or counting)")
