// A task with a frozen model at its input alone, with the settings of training_configs/open.jsonnet: TASK is ner, snli,
// sst or pos; MODEL is the folder of a transformer, 'bilm' for that of ELMO_TASKS_BILM, or 'none' (not for pos).
local ner = import '../../training_configs/lib/ner.libsonnet';
local pos = import '../../training_configs/lib/pos.libsonnet';
local snli = import '../../training_configs/lib/snli.libsonnet';
local sst = import '../../training_configs/lib/sst.libsonnet';

local model = std.extVar('MODEL');
local elmo_at = if model == 'none' then [] else ['input'];
local contextual = if std.member(['bilm', 'none'], model) then null else model;

local epochs(number) = { trainer+: { num_epochs: number, patience: null } };
local batches_of(size) = { data_loader+: { batch_sampler+: { batch_size: size } } };

{
  ner: ner(elmo_at=elmo_at, contextual=contextual) + epochs(14) + batches_of(32),
  snli: snli(elmo_at=elmo_at, contextual=contextual, hidden=150) + epochs(8),
  sst: sst(elmo_at=elmo_at, contextual=contextual, hidden=150) + epochs(6) + batches_of(50) + {
    model+: { embedding_dropout: 0.2 },
    trainer+: { optimizer+: { lr: 0.001 } },
  },
  pos: pos(layer='mix', contextual=contextual),
}[std.extVar('TASK')] + { evaluate_on_test: true }
