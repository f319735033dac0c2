// A transformer where the biLM is, for the argument `contextual` of the tasks' templates:
//
//     local bert = import 'lib/transformer.libsonnet';
//     ner(elmo_at=['input'], contextual=bert('bert-base-cased'))

function(
  // A folder with a checkpoint, or a name on the Hugging Face hub.
  model_name,
  // The vector of a word: that of its 'first' piece, or the 'mean' of its pieces.
  pooling='mean',
  // The learning rate of a transformer that is trained, as 2e-5; null for a frozen one.
  lr=null,
  // Steps in which the learning rates of all weights rise from 0; they then fall to 0 until the last epoch, in place of
  // the schedule of the task.
  warmup_steps=null,
) {
  assert warmup_steps == null || lr != null : 'warmup_steps needs an lr: a frozen transformer is not trained',
  assert warmup_steps == null || warmup_steps >= 0 : 'warmup_steps must be at least 0, but is %d' % [warmup_steps],
  local size = std.native('elmo_transformer')(model_name),

  width: size.width,
  indexer: { type: 'elmo_transformer', model_name: model_name },
  model: {
    type: 'transformer',
    model_name: model_name,
    pooling: pooling,
    [if lr != null then 'requires_grad']: true,
  },
  trainer: {
    // Adadelta's learning rate has no meaning for a transformer: then all weights are trained with Adam.
    [if lr != null then 'optimizer']:
      (if std.endsWith(super.optimizer.type, 'adadelta') then { type: 'elmo_fused_adam', lr: 0.001 } else super.optimizer)
      + { parameter_groups: [[['\\.transformer\\.network\\.'], { lr: lr }]] },
    [if warmup_steps != null then 'learning_rate_scheduler']: { type: 'linear_with_warmup', warmup_steps: warmup_steps },
  },
}
