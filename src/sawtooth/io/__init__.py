"""Files, tables, text and work: written whole, read with suspicion, shown to fit a terminal, done in parallel."""
