"""How to split a budget of labels between source tasks, which teach features, and heads, which use them."""
