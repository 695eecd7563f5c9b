"""Claims and studies: their types, intervals, labs and generic experiments."""
