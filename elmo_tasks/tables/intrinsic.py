"""Tables 5 and 6: what other commands have measured, beside the paper's numbers."""

import json
from pathlib import Path

from elmo_tasks.tables import paper
from elmo_tasks.tables.table import Table

__all__ = ["MADE_BY", "intrinsic_table"]

MADE_BY = {
    "5": "allennlp elmo-wsd",
    "6": "allennlp train training_configs/pos_layer.jsonnet, once for each layer",
}

_QUOTED = {"5": paper.TABLE_5, "6": paper.TABLE_6}
_TITLES = {"5": "Table 5: word senses, F1", "6": "Table 6: parts of speech, accuracy"}


def intrinsic_table(number: str, folder: Path) -> Table:
    """
    # Parameters

    number : `str`
        `"5"` or `"6"`.
    folder : `Path`
        Where `table5.json` or `table6.json` is:

            {"format": 1, "data": "what was tested on", "bilm": "which biLM", "columns": ["four sets", "ALL"],
             "rows": [{"model": "biLM, first layer", "scores": [66.1, 66.0]}], "notes": ["a sentence"]}

        with scores in percent or `null`, the first of which is what the paper has too. A model of the paper is called
        as in `paper.TABLE_5` and `TABLE_6`, and stands beside its number there.

    # Returns

    `Table`
        Our rows, and those of the paper that we have not measured.

    # Raises

    `FileNotFoundError`
        If the file is not there; the message names what makes it.
    `ValueError`
        If it has another form.
    """
    path = folder / f"table{number}.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"Table {number} is printed from {path}, which is not there: {MADE_BY[number]} makes it"
        )
    quoted = _QUOTED[number]
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != 1:
            raise ValueError(f'the file must have "format": 1, but has {content["format"]!r}')
        columns, ours = content["columns"], {row["model"]: row["scores"] for row in content["rows"]}
        notes = [f"Data: {content['data']}; biLM: {content['bilm']}.", *content.get("notes", [])]
        rows = []
        for model in dict.fromkeys([*quoted, *ours]):
            scores = ours.get(model, [None] * len(columns))
            if len(scores) != len(columns):
                raise ValueError(
                    f"{model!r} must have {len(columns)} scores, as there are columns, but has {len(scores)}"
                )
            cells = ["–" if score is None else f"{score:.2f}" for score in scores]
            rows.append([model, *cells, str(quoted[model][0]) if model in quoted else "–"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} must be of the form that elmo_tasks.tables.intrinsic_table describes, but: {error!r}"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    sources = paper.sources_of("".join(source for _, source in quoted.values()))
    return Table(_TITLES[number], ["model", *columns, "paper"], rows, [*notes, f"The paper's numbers: {sources}."])
