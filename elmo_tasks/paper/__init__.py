"""
The paper's tables and figures: `plan` has the runs, `train` trains them, `run_scores` collects
their scores, and `tables`, `intrinsic_tables` and `figures` show them next to the paper's
`numbers`. The intrinsic evaluations are `neighbors` (Table 4), `word_senses` (Table 5) and
`perplexity`.
"""
