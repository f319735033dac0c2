// A transformer instead of the biLM:
//
//     local bert = import 'lib/transformer.libsonnet';
//     ner(elmo_at=['input'], elmo={ transformer: bert('bert-base-cased') })

function(
  // A folder with a checkpoint, or a name on the Hugging Face hub.
  model_name,
  // The vector of a word: its 'first' piece, or the mean of its pieces ('avg').
  pooling='avg',
  // The maximum number of pieces per segment: at most the positions of the checkpoint.
  max_length=512,
  // The learning rate of the transformer, such as 2e-5; null freezes it.
  lr=null,
  // The number of steps in which all learning rates rise from 0; they then fall to 0 until the
  // last epoch.
  warmup_steps=null,
  // { model_type, width } of the checkpoint: 'bert' and the width of its layers, for example. By
  // default, its config.json is read.
  about=null,
) {
  local known = if about == null then std.native('elmo_transformer')(model_name) else about,

  width: known.width,
  indexer: {
    type: 'elmo_transformer',
    model_name: model_name,
    max_length: max_length,
    // With byte-level pieces, a word begins with the space before it.
    [if known.model_type == 'roberta' then 'tokenizer_kwargs']: { add_prefix_space: true },
  },
  embedder: 'elmo_transformer',
  model: {
    type: 'transformer',
    model_name: model_name,
    pooling: pooling,
    [if lr != null then 'requires_grad']: true,
  },
  // `super` is the trainer of the config that this one is added to (`trainer+:`).
  trainer: {
    // Adadelta's learning rate has no meaning for a transformer, so Adam then trains all weights.
    [if lr != null then 'optimizer']:
      (
        if std.endsWith(super.optimizer.type, 'adadelta')
        then { type: 'elmo_fused_adam', lr: 0.001 }
        else super.optimizer
      )
      + { parameter_groups: [[['\\.transformer_model\\.'], { lr: lr }]] },
    [if warmup_steps != null then 'learning_rate_scheduler']: {
      type: 'linear_with_warmup',
      warmup_steps: warmup_steps,
    },
  },
}
