// The biLM as a language model: section 3 of the paper.
local environment = import 'environment.libsonnet';

local filters = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]];

// Words per training window in bilm-tf.
local window = 20;

// Two of the sizes that the authors published, and how we train each.
local sizes = {
  original: {
    cells: 4096,
    projection: 512,
    filters: filters,
    highways: 2,
    // As in bilm-tf: batches of 128 windows on each of three GPUs.
    tokens: 3 * 128 * window,
    epochs: 10,
    // bilm-tf uses the gradient of a whole window's loss, 20 times ours, an accumulator that starts
    // at 1, and a clip of 10. Adagrad takes the same steps if all three are scaled down.
    optimizer: { type: 'adagrad', lr: 0.2, initial_accumulator_value: 1.0 / (window * window) },
    grad_norm: 10.0 / window,
    scheduler: null,
  },
  // Differs from the paper: Adam with a learning rate that decays to 0 needs a tenth of the time.
  small: {
    cells: 1024,
    projection: 128,
    filters: filters[:6],
    highways: 1,
    tokens: 16384,
    epochs: 4,
    optimizer: { type: 'elmo_fused_adam', lr: 0.002 },
    grad_norm: 10.0,
    scheduler: { type: 'elmo_linear_with_warmup', warmup_steps: 500 },
  },
};

// Fine-tuning on the text of a task, for a biLM of any size, without a schedule.
local finetuning = {
  tokens: 4096,
  epochs: 1,
  optimizer: { type: 'elmo_fused_adam', lr: 0.0002 },
  grad_norm: 10.0,
  scheduler: null,
};

// A size by its name, or the small one with some of its values replaced.
local of_size(size) = if std.isString(size) then sizes[size] else (
  local unknown = std.setDiff(std.objectFields(size), std.objectFields(sizes.small));
  assert unknown == [] : 'expected a size of %s, got %s' % [std.objectFields(sizes.small), unknown];
  sizes.small + size
);

// A softmax for a frozen biLM.
local softmax_alone = sizes.small { tokens: 4096, epochs: 1, scheduler+: { warmup_steps: 200 } };

function(
  // 'small', 'original', or the differences from the small one, such as
  // { cells: 512, projection: 64 }.
  size='small',
  // { options, pretrained_file } of a biLM to start from; null for a new one.
  start=null,
  // Whether the biLM to start from is frozen, and only a softmax over the words of the text is
  // trained.
  frozen=false,
  // A bilm-tf vocab.txt as the vocabulary; null counts the words of the text. A softmax to start
  // from has its own.
  word_list=if start != null && !frozen && std.objectHasAll(start, 'word_list')
  then start.word_list else null,
  max_words=if frozen then 30000 else 800000,
  min_count=3,
  // Text: a file, a folder or a pattern.
  text={ train: environment.data('lm/train*'), dev: environment.data('lm/dev*') },
  // Whether text is normalised to NFC, as in the commands that read text.
  nfc=true,
  // Whether the softmax is trained on samples of the words or on all: 'sampled' or 'full'.
  softmax='sampled',
  dropout=if frozen then 0 else 0.1,
  training=if frozen then softmax_alone else if start != null then finetuning else of_size(size),
  epochs=training.epochs,
  tokens_per_batch=training.tokens,
  optimizer=training.optimizer,
  scheduler=training.scheduler,
) (
  local shape = of_size(size);
  assert start == null || size == 'small' :
         'expected no size with start: give epochs, tokens_per_batch, optimizer or scheduler';
  assert start != null || !frozen : 'expected start, the biLM that keeps its weights, with frozen';
  local loader = { type: 'elmo_lm', max_tokens_per_batch: tokens_per_batch };

  {
    dataset_reader: {
      type: 'elmo_lm',
      nfc: nfc,
    },
    train_data_path: text.train,
    validation_data_path: text.dev,
    datasets_for_vocab_creation: ['train'],
    vocabulary: if word_list != null then { type: 'elmo_lm_from_file', path: word_list }
    else { type: 'elmo_lm', max_words: max_words, min_count: min_count },
    model: {
      type: 'elmo_bilm',
      options: if start != null then start.options else {
        lstm: {
          use_skip_connections: true,
          projection_dim: shape.projection,
          cell_clip: 3,
          proj_clip: 3,
          dim: shape.cells,
          n_layers: 2,
        },
        char_cnn: {
          activation: 'relu',
          filters: shape.filters,
          n_highway: shape.highways,
          embedding: { dim: 16 },
          n_characters: 262,
          max_characters_per_token: 50,
        },
      },
      [if start != null then 'pretrained_file']: start.pretrained_file,
      // Without its word list, the softmax in the file may be for different words.
      [if frozen || (start != null && word_list == null) then 'pretrained_softmax']: false,
      softmax: softmax,
      // For few words, a quarter of the samples is enough.
      [if frozen then 'n_samples']: 2048,
      dropout: dropout,
    },
    data_loader: loader,
    validation_data_loader: loader { shuffle: false },
    trainer: {
      optimizer: optimizer,
      [if scheduler != null then 'learning_rate_scheduler']: scheduler,
      num_epochs: epochs,
      grad_norm: training.grad_norm,
      validation_metric: '-perplexity',
      // Also by time, because a small run ends before this many batches.
      checkpointer: {
        type: 'elmo_frozen_once',
        save_every_num_batches: 2000,
        save_every_num_seconds: 600,
        keep_most_recent_by_count: 2,
      },
      [if start != null && !frozen then 'callbacks']: ['elmo_perplexity_before'],
      [if frozen then 'no_grad']: ['^bilm\\.'],
    },
  }
)
