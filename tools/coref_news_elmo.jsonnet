// Coreference in novels and news: the model `coref` of models/. One epoch of a quarter of LitBank's novels and of OntoGUM
// (`tools/coref_news_data.py`), after the run of the plan `open` on LitBank.
local environment = import '../training_configs/lib/environment.libsonnet';
local run = 'output/models/coref/input/1/run';

(import '../training_configs/lib/coref.libsonnet')(elmo_at=['input']) + {
  train_data_path: environment.data('coref_news/train.conll'),
  dataset_reader+: { remove_singleton_clusters: true },
  vocabulary: { type: 'from_files', directory: run + '/vocabulary' },
  model+: {
    initializer: {
      regexes: [['^(?!.*bilm\\.).*$', { type: 'pretrained', weights_file_path: run + '/best.th' }]],
    },
  },
  trainer+: {
    num_epochs: 1,
    patience: null,
    learning_rate_scheduler: { type: 'elmo_linear_with_warmup', warmup_steps: 10 },
  },
}
