// The plan of the replication on open data, for two CPU cores: `allennlp elmo-tables --plan open`.
//
// The tasks are in the order in which they are trained, quick ones first. Changing a setting
// invalidates finished runs: their files are refused as runs of a different config.
local environment = import 'lib/environment.libsonnet';
local transformer = import 'lib/transformer.libsonnet';

// Figure 2 is made from the runs of Table 1.
local table_1(seeds) = { 'table 1': seeds, 'figure 2': seeds };
local with_transformer(seeds) = { 'table 1, transformer': seeds };
local ablated(seeds) = { 'table 2': seeds, 'table 3': seeds };
local curves(seeds) = { 'figure 1': seeds };

// A run ends after this many epochs without a better score on the dev set, with and without ELMo.
// `must_converge` below refuses a run that reaches the limit. The numbers are the templates' own,
// except for semantic roles (the template, like the paper, waits for 200 epochs) and questions
// (24 epochs, without patience): two cores cannot wait for that.
local patience(epochs, limit=200) = { 'trainer.num_epochs': limit, 'trainer.patience': epochs };
local batches_of(size) = { 'data_loader.batch_sampler.batch_size': size };

// An epoch on 1% or 10% of a training set has few steps, so a run waits for more epochs.
local slowly(epochs) = patience(epochs, limit=2000);
// The same for SNLI's learning rate, which otherwise is halved after each epoch without a better
// score: five times before a run ends, as on the whole set.
local slowly_halved(epochs) =
  slowly(epochs) + { 'trainer.learning_rate_scheduler.patience': epochs / 5 - 1 };

{
  bilm: 'small-open',
  glove: 'glove.open.100d.txt.gz',
  must_converge: true,
  // Frozen, at ELMo's places. The folder is described in docs/replication/index.md.
  transformer: {
    title: 'all-MiniLM-L6-v2',
    note: 'The training data of all-MiniLM-L6-v2 include SNLI and MultiNLI (its model card), so its '
          + 'score on SNLI is not comparable with the others.',
    settings: transformer(
      environment.data('minilm'),
      about={ model_type: 'bert', width: 384 },
    ),
  },
  tasks: [
    {
      task: 'ner',
      data: 'WNUT-17',
      size: '3,394 sentences',
      overrides: patience(25) + batches_of(32),
      seeds: table_1(5) + with_transformer(3),
    },
    {
      task: 'sst',
      data: 'SST-5',
      size: '8,544 sentences',
      arguments: { hidden: 150 },
      overrides: patience(5) + batches_of(50)
                 + { 'trainer.optimizer.lr': 0.001, 'model.embedding_dropout': 0.2 },
      seeds: table_1(5) + ablated(3) + with_transformer(3),
    },
    {
      task: 'snli',
      data: 'SNLI, 18,000 pairs of its training set',
      size: '18,000 pairs',
      arguments: { hidden: 150 },
      overrides: patience(5),
      seeds: table_1(5) + ablated(3) + curves(3) + with_transformer(3),
      // 1% and 10%.
      sizes: [180, 1800],
      overrides_by_size: { '180': slowly_halved(50), '1800': slowly_halved(20) },
    },
    {
      task: 'squad',
      data: "SQuAD 1.1's dev set, split by article into 9,231 questions to train on and "
            + '1,339 to score',
      size: '9,231 questions',
      overrides: patience(5) + batches_of(20),
      seeds: table_1(3) + ablated(3),
    },
    {
      task: 'srl',
      data: 'PropBank of the English Web Treebank (40,391 propositions)',
      size: '10,532 sentences',
      arguments: { hidden: 150 },
      overrides: patience(5) + batches_of(40),
      seeds: table_1(3) + ablated(3) + curves(3),
      // 1% and 10% of its 10,532 sentences with a predicate.
      sizes: [105, 1053],
      overrides_by_size: { '105': slowly(50), '1053': slowly(20) },
    },
    {
      task: 'coref',
      data: 'LitBank without clusters of one mention (80 documents)',
      size: '80 documents',
      // As in OntoNotes.
      overrides: patience(10) + { 'dataset_reader.remove_singleton_clusters': true },
      seeds: table_1(3),
    },
    {
      task: 'pos',
      data: 'UD English EWT, XPOS',
      size: '12,544 sentences',
      seeds: { 'table 6': 3 },
    },
  ],
}
