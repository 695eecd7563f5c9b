"""What a policy or a view remembers, read off logged episodes."""
