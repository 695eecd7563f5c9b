"""Policy classes in torch: tables, linear classes and networks."""
