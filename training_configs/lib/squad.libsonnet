// Questions and answers: section A.4 of the paper.
local environment = import 'environment.libsonnet';
local text_with = import 'text.libsonnet';

// Units of each direction of the biGRUs, and units of the linear layers with ReLU.
local hidden = 90;
local linear = 2 * hidden;

local gru(input_size) = { type: 'elmo_gru', input_size: input_size, hidden_size: hidden, bidirectional: true };

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see text.libsonnet.
  elmo={},
  // Differs from the paper, which uses the cased GloVe 840B: the included vectors and GloVe 6B contain only
  // lower-cased words. For cased vectors, set `lowercase=false`.
  lowercase=true,
) (
  local text = text_with(
    elmo_at,
    // The paper's code has dropout on ELMo at both places, in addition to the dropout of the biGRU's input.
    { dropout: { input: 0.5, output: 0.5 } } + elmo,
    lowercase=lowercase,
    // Differs from the paper: its code drops out a fifth of the character embeddings.
    characters={ dim: 20, filters: 100, widths: [5], partial_windows: true },
  );
  local reader = { type: 'elmo_squad', token_indexers: text.token_indexers };

  {
    dataset_reader: reader { max_passage_tokens: 800 },
    validation_dataset_reader: reader,
    train_data_path: environment.data('squad/train.json'),
    // No test_data_path, because SQuAD's test set is not public.
    validation_data_path: environment.data('squad/dev.json'),
    vocabulary: text.vocabulary,
    model: {
      type: 'elmo_squad',
      contextual_encoder: gru(text.input_width),
      self_encoder: gru(linear),
      start_encoder: gru(linear),
      end_encoder: gru(linear + 2 * hidden),
      dropout: 0.2,
      max_span_tokens: 17,
    } + text.model,
    data_loader: { batch_sampler: { type: 'bucket', batch_size: 45, sorting_keys: ['passage'] } },
    trainer: {
      // TensorFlow's default rho, as in the paper's code, and not torch's. Differs from the paper: torch's epsilon of
      // 1e-6, where TensorFlow's is 1e-8.
      optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95 },
      moving_average: { type: 'elmo_exponential', decay: 0.999 },
      validation_metric: '+f1',
      num_epochs: 24,
    } + text.trainer,
  }
)
