local text = (import 'lib/text.libsonnet')(elmo_at=['input']);

{
  dataset_reader: { type: 'relations', token_indexers: text.token_indexers },
  train_data_path: 'examples/relations/relations.txt',
  validation_data_path: self.train_data_path,
  vocabulary: text.vocabulary,
  model: { type: 'relations' } + text.model,
  data_loader: { batch_size: 4, shuffle: true },
  trainer: { optimizer: { type: 'adam', lr: 0.01 }, num_epochs: 12, validation_metric: '-loss' } + text.trainer,
}
