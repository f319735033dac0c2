"""spaCy: ELMo as a component and as a layer, and trained models of tasks as components."""
