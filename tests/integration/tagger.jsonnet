// A small tagger on a small file: what it learns is of no interest, that every command can use it is.
// TAGGER_DATA: a file in the format of CoNLL 2003.
{
  dataset_reader: { type: 'conll2003', tag_label: 'ner', convert_to_coding_scheme: 'BIOUL' },
  train_data_path: std.extVar('TAGGER_DATA'),
  validation_data_path: self.train_data_path,
  model: {
    type: 'crf_tagger',
    label_encoding: 'BIOUL',
    constrain_crf_decoding: true,
    calculate_span_f1: true,
    text_field_embedder: { token_embedders: { tokens: { type: 'embedding', embedding_dim: 8 } } },
    encoder: { type: 'lstm', input_size: 8, hidden_size: 8 },
  },
  data_loader: { batch_size: 2, shuffle: true },
  trainer: {
    num_epochs: 3,
    optimizer: { type: 'sgd', lr: 0.1, momentum: 0.9 },
    learning_rate_scheduler: { type: 'reduce_on_plateau', mode: 'max', patience: 0 },
    grad_norm: 5.0,
    validation_metric: '+f1-measure-overall',
  },
}
