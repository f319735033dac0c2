// Variants of ../ner.jsonnet: with ELMo or a transformer, or other data.
local elmo_with = import 'elmo.libsonnet';
local environment = import 'environment.libsonnet';

function(
  elmo_at=[],
  // What differs from ELMo's defaults: see elmo.libsonnet.
  elmo={},
  // The folder of the data.
  data='ner',
) (
  // The paper's lambda is large enough to keep the weights nearly equal.
  local added = elmo_with(elmo_at, { l2: 0.1 } + elmo);

  added.added_to(import '../ner.jsonnet') + {
    train_data_path: environment.data(data + '/train.txt'),
    validation_data_path: environment.data(data + '/dev.txt'),
    test_data_path: environment.data(data + '/test.txt'),
    model+: {
      encoders: [super.encoders[0] { input_size+: added.input_width }, super.encoders[1]],
    },
  }
)
