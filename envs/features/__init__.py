"""Feature learning: where to spend steps, samples and width, when training shows little of itself."""
