"""
The paper's tables and figures: `plan` has the runs, `train` trains them, `tables` and `figures`
show them next to the paper's `numbers`. The intrinsic evaluations are `neighbors` (Table 4),
`word_senses` (Table 5) and `perplexity`.
"""
