// NER with a frozen transformer at the input, where Table 1 has ELMo, for 14 epochs, as in
// `results/studies.csv`. `allennlp elmo-tables --plan open --transformer` trains it to the end.
//
//     export TRANSFORMER=all-MiniLM-L6-v2 SEED=1 ELMO_TASKS_DATA=output/open
//     allennlp train benchmarks/ner_transformer.jsonnet -s output/ner_transformer_$SEED
local ner = import 'lib/ner.libsonnet';
local seed = std.parseInt(std.extVar('SEED'));

ner(elmo_at=['input'], elmo={ transformer: std.extVar('TRANSFORMER') }) + {
  random_seed: seed,
  numpy_seed: seed,
  pytorch_seed: seed,
  evaluate_on_test: true,
  data_loader+: { batch_sampler+: { batch_size: 32 } },
  trainer+: { num_epochs: 14, patience: null },
}
