// A small biLM that learns the layers of a larger one from text.
local bilm = import 'bilm.libsonnet';
local environment = import 'environment.libsonnet';

// Whether a student of that shape can begin with cells and filters of its teacher.
local is_part(teacher, cells, projection, filters) =
  local widths(filters) = [filter[0] for filter in filters];
  projection == teacher.lstm.projection_dim
  && cells <= teacher.lstm.dim
  && widths(filters) == widths(teacher.char_cnn.filters)
  && std.all([
    filters[i][1] <= teacher.char_cnn.filters[i][1]
    for i in std.range(0, std.length(filters) - 1)
  ]);

function(
  // { options, pretrained_file } of the biLM to learn from.
  teacher=environment.bilm,
  // Of the LSTMs: a quarter of the teacher's.
  cells=std.max(1, std.floor(teacher.options.lstm.dim / 4)),
  // Half of the units of a vector.
  projection=teacher.options.lstm.projection_dim,
  // Of the character CNN: three quarters of the teacher's.
  filters=[[filter[0], std.max(1, std.floor(3 * filter[1] / 4))] for filter in teacher.options.char_cnn.filters],
  // What the student begins with: 'teacher', its cells and filters of the largest weights; or 'random', which is the
  // default where a student of that shape cannot begin so.
  start=if is_part(teacher.options, cells, projection, filters) then 'teacher' else 'random',
  // Of the teacher's products: 'float32', or 'bf16', which is faster where the device has instructions for it.
  precision='float32',
  // Text: a file, a folder or a pattern.
  text={ train: environment.data('lm/train*'), dev: environment.data('lm/dev*') },
  epochs=1,
  // The batches of an epoch, as a fixed amount of text; null for all of it.
  batches_per_epoch=null,
  tokens_per_batch=4096,
  num_workers=0,
) (
  local training = {
    tokens: tokens_per_batch,
    epochs: epochs,
    optimizer: { type: 'elmo_fused_adam', lr: if start == 'teacher' then 0.005 else 0.002 },
    scheduler: { type: 'linear_with_warmup', warmup_steps: 200 },
  };
  // Nothing is predicted: the words of a batch have numbers because its data loader gives them some.
  local word_list = if std.objectHasAll(teacher, 'word_list') then teacher.word_list;

  bilm(size=training, text=text, word_list=word_list, max_words=30000, num_workers=num_workers) {
    model: {
      type: 'elmo_bilm_student',
      options: teacher.options {
        lstm+: { dim: cells, projection_dim: projection },
        char_cnn+: { filters: filters },
      },
      start: start,
      teacher: { options: teacher.options, pretrained_file: teacher.pretrained_file, precision: precision },
    },
    data_loader+: { [if batches_per_epoch != null then 'batches_per_epoch']: batches_per_epoch },
    trainer+: { validation_metric: '-error' },
  }
)
