// The training of `small-ko-open-2`: one epoch of more text, which starts from the biLM in ELMO_TASKS_BILM.
local environment = import 'lib/environment.libsonnet';

(import 'lib/bilm.libsonnet')(
  start=environment.bilm,
  optimizer={ type: 'elmo_fused_adam', lr: 0.001 },
  scheduler={ type: 'elmo_linear_with_warmup', warmup_steps: 200 },
  min_count=5,
  max_words=50000,
) + { model+: { n_samples: 2048 } }
