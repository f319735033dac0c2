// Trains a biLM on more text, where it also learns from a transformer's vectors of the words.
local environment = import 'lib/environment.libsonnet';

(import 'lib/bilm.libsonnet')(
  start=environment.bilm,
  teacher={ model_name: 'sentence-transformers/all-MiniLM-L6-v2', layers: [3, 4, 5], lm_weight: 0.2 },
)
