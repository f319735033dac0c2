// The paper's own settings, as in the templates: five seeds for every table and figure.
local tables(names) = { [name]: 5 for name in names };
local compared = ['table 1', 'figure 2'];
local ablated = compared + ['table 2', 'table 3'];

{
  tasks: [
    { task: 'squad', data: 'SQuAD 1.1', seeds: tables(ablated) },
    // 0.1%, 1%, 10%, 20% and 50%.
    {
      task: 'snli',
      data: 'SNLI',
      seeds: tables(ablated + ['figure 1']),
      sizes: [550, 5500, 55000, 110000, 275000],
    },
    {
      task: 'srl',
      data: 'OntoNotes 5.0',
      seeds: tables(ablated + ['figure 1']),
      sizes: [750, 7500, 15000, 37500],
    },
    { task: 'coref', data: 'OntoNotes 5.0', seeds: tables(compared) },
    { task: 'ner', data: 'CoNLL-2003', seeds: tables(compared) },
    { task: 'sst', data: 'SST-5', seeds: tables(compared) },
    { task: 'pos', data: 'Wall Street Journal', seeds: tables(['table 6']) },
  ],
}
