"""
The LSTMs of the biLM.

`BidirectionalLayer` chooses how a layer is computed, and each way is a module: `training` (with
gradients), `inference` (a batch, from packed weights) and `one_sentence` (on a CPU). The first two
run a `Recurrence`, whose steps are computed by torch's operators or, on a GPU, by Triton. The cells
in `cell` are also those of the task models.
"""
