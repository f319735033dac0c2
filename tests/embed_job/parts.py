"""A text of four lines in two parts, as a job gives it to the formats."""

import numpy as np

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart

# A line twice, one that is blank, one that is no ASCII.
SENTENCES = ["a/b ç", "", "c", "a/b ç"]
VECTORS = [
    np.arange(8, dtype=np.float16).reshape(2, 4),
    np.zeros((0, 4), np.float16),
    np.full((1, 4), 0.5, np.float16),
    -np.arange(8, dtype=np.float16).reshape(2, 4),
]
N_LINES = len(SENTENCES)
PARTS = [EmbeddedPart(0, SENTENCES[:3], VECTORS[:3]), EmbeddedPart(3, SENTENCES[3:], VECTORS[3:])]
JOB = {"layers": "mix", "text": "0123", "weights": [1.0, 0.5]}
