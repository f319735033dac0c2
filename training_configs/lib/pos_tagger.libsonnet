// Parts of speech from words, characters and a biLSTM, with or without ELMo. Not in the paper: a better tagger than
// its linear classifier.
local environment = import 'environment.libsonnet';
local text_with = import 'text.libsonnet';

function(
  // [] or ['input'].
  elmo_at=[],
  // What differs from ELMo's defaults: see text.libsonnet.
  elmo={},
  // Which column of CoNLL-U: 'xpos', 'upos', or 'both'.
  tags='xpos',
  // Units of each direction of the biLSTM.
  hidden=200,
) (
  local text = text_with(elmo_at, elmo, tune_glove=true, characters={ dim: 16, filters: 128, widths: [3] });
  assert text.output_width == 0 : "elmo_at: expected [] or ['input'], got %s" % [elmo_at];
  local of_text = text.model.text_field_embedder;

  environment.files('pos/%s.conllu') + {
    dataset_reader: { type: 'elmo_pos', tags: tags, token_indexers: text.token_indexers },
    vocabulary: text.vocabulary,
    model: {
      type: 'elmo_pos',
      // The biLM is inside its only embedder.
      text_field_embedder: of_text {
        [if elmo_at != [] then 'token_embedders']+: { elmo+: { bilm: text.model.bilm } },
      },
      encoder: { type: 'elmo_lstm', input_size: text.input_width, hidden_size: hidden, bidirectional: true },
    },
    data_loader: { batch_sampler: { type: 'bucket', batch_size: 64 } },
    trainer: {
      optimizer: { type: 'elmo_fused_adam', lr: 0.001 },
      validation_metric: '+accuracy',
      num_epochs: 30,
      patience: 4,
      grad_norm: 5.0,
    } + text.trainer,
  }
)
