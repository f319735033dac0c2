local text = (import 'lib/text.libsonnet')(elmo_at=['input']);

{
  dataset_reader: { type: 'questions', token_indexers: text.token_indexers },
  train_data_path: 'questions.txt',
  validation_data_path: 'questions.txt',
  vocabulary: text.vocabulary,
  model: { type: 'questions' } + text.model,
  data_loader: { batch_size: 8, shuffle: true },
  trainer: { optimizer: { type: 'adam', lr: 0.01 }, num_epochs: 10, validation_metric: '+accuracy' } + text.trainer,
}
