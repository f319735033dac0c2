// A task with a frozen model at its input alone, with the settings of training_configs/open.jsonnet: TASK is ner, snli,
// sst, pos, or one of the two with less to train on, snli_small and sst_small; MODEL is the folder of a transformer,
// 'bilm' for that of ELMO_TASKS_BILM, or 'none' (not for pos).
local ner = import '../../training_configs/lib/ner.libsonnet';
local pos = import '../../training_configs/lib/pos.libsonnet';
local snli = import '../../training_configs/lib/snli.libsonnet';
local sst = import '../../training_configs/lib/sst.libsonnet';

local model = std.extVar('MODEL');
local elmo_at = if model == 'none' then [] else ['input'];
local contextual = if std.member(['bilm', 'none'], model) then null else model;

local epochs(number) = { trainer+: { num_epochs: number, patience: null } };
local batches_of(size) = { data_loader+: { batch_sampler+: { batch_size: size } } };

local tasks = {
  ner: ner(elmo_at=elmo_at, contextual=contextual) + epochs(14) + batches_of(32),
  snli: snli(elmo_at=elmo_at, contextual=contextual, hidden=150) + epochs(8),
  sst: sst(elmo_at=elmo_at, contextual=contextual, hidden=150) + epochs(6) + batches_of(50) + {
    model+: { embedding_dropout: 0.2 },
    trainer+: { optimizer+: { lr: 0.001 } },
  },
  pos: pos(layer='mix', contextual=contextual),
  // The first pairs of the training set.
  snli_small: tasks.snli + {
    validation_dataset_reader: tasks.snli.dataset_reader,
    dataset_reader+: { max_instances: 6000 },
  },
  // Without the phrases of the sentences.
  sst_small: tasks.sst + { dataset_reader+: { min_phrase_length: null } },
};

tasks[std.extVar('TASK')] + { evaluate_on_test: true }
