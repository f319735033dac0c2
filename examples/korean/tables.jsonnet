// Korean tasks: `allennlp elmo-tables --plan examples/korean/tables.jsonnet --data FOLDER --bilm small-ko-open-2`.
//
// `ner` is KLUE's dev set (4,000 / 500 / 500 sentences), `sst` the film reviews of nsmc in five classes, and `pos` UD
// Kaist, with its 17 universal tags.
local epochs(number) = { 'trainer.num_epochs': number, 'trainer.patience': null };

{
  bilm: 'small-ko-open-2',
  glove: 'word2vec.ko.100d.txt.gz',
  tasks: [
    {
      task: 'ner',
      data: 'KLUE-NER',
      size: '4,000 sentences',
      overrides: epochs(6) + { 'data_loader.batch_sampler.batch_size': 32 },
      seeds: { 'table 1': 3 },
    },
    {
      task: 'sst',
      data: 'nsmc',
      size: '15,000 sentences',
      arguments: { hidden: 100 },
      overrides: epochs(2) + {
        'data_loader.batch_sampler.batch_size': 50,
        'trainer.optimizer.lr': 0.001,
        'model.embedding_dropout': 0.2,
      },
      seeds: { 'table 1': 3 },
    },
    { task: 'pos', data: 'UD Kaist, UPOS', size: '10,000 sentences', arguments: { tags: 'upos' }, seeds: { 'table 6': 3 } },
  ],
}
