"""
Jobs over a corpus: `embed` writes vectors, `annotate` what trained tasks find, in the forms of
`outputs`. Both read a `corpus`, and are jobs (`elmo_tasks.files.jobs`).
"""
