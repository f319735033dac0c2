"""The LSTMs of the biLM: cell, and recurrence over packed rows."""
