// The plan of the replication on open data, for two CPU cores: `allennlp elmo-tables --plan open`.
//
// The tasks are in the order in which they are trained, quick ones first. Changing a setting invalidates finished runs:
// their files are refused as runs of a different config.

// Figure 2 is made from the runs of Table 1.
local table_1(seeds) = { 'table 1': seeds, 'figure 2': seeds };
local ablated(seeds) = { 'table 2': seeds, 'table 3': seeds };
local curves(seeds) = { 'figure 1': seeds };

// A fixed number of epochs, chosen on the dev set in a pilot run; the best epoch is tested.
local epochs(number) = { 'trainer.num_epochs': number, 'trainer.patience': null };
local batches_of(size) = { 'data_loader.batch_sampler.batch_size': size };

{
  bilm: 'small-open',
  glove: 'glove.open.100d.txt.gz',
  tasks: [
    {
      task: 'ner',
      data: 'WNUT-17',
      size: '3,394 sentences',
      overrides: epochs(14) + batches_of(32),
      seeds: table_1(5),
    },
    {
      task: 'sst',
      data: 'SST-5',
      size: '8,544 sentences',
      arguments: { hidden: 150 },
      overrides: epochs(6) + batches_of(50) + { 'trainer.optimizer.lr': 0.001, 'model.embedding_dropout': 0.2 },
      seeds: table_1(5) + ablated(3),
    },
    {
      task: 'snli',
      data: 'SNLI, 18,000 pairs of its training set',
      size: '18,000 pairs',
      arguments: { hidden: 150 },
      overrides: epochs(8),
      seeds: table_1(5) + ablated(3) + curves(3),
      // 1% and 10%.
      sizes: [180, 1800],
    },
    {
      task: 'squad',
      data: "SQuAD 1.1's dev set, split by article into 9,231 questions to train on and 1,339 to score",
      size: '9,231 questions',
      overrides: epochs(6) + batches_of(20),
      seeds: table_1(3) + ablated(1),
    },
    {
      task: 'srl',
      data: 'PropBank of the English Web Treebank (40,391 propositions)',
      size: '10,532 sentences',
      arguments: { hidden: 150 },
      overrides: epochs(4) + batches_of(40),
      seeds: table_1(3) + ablated(3) + curves(3),
      // 1% and 10% of its 10,532 sentences with a predicate.
      sizes: [105, 1053],
    },
    {
      task: 'coref',
      data: 'LitBank without clusters of one mention (80 documents)',
      size: '80 documents',
      // As in OntoNotes.
      overrides: epochs(8) + { 'dataset_reader.remove_singleton_clusters': true },
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
