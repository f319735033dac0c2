"""
Writes data for coreference in novels and in news: `python tools/coref_news_data.py GUM DATA`.

GUM is a clone of amir-zeldes/gum, and DATA what `allennlp elmo-data open --to DATA` wrote. The
training data are a quarter of the novels and OntoGUM's news, interviews, biographies and travel
guides, without the documents that GUM uses for development and tests.
"""

import sys
from pathlib import Path

from other_text import HELD_BACK, documents

_END = "#end document\n"


def main() -> None:
    gum = Path(sys.argv[1])
    data = Path(sys.argv[2])
    novels = (data / "coref/train.conll").read_text("utf-8").split(_END)[:-1]
    texts = [novel + _END for novel in novels[::4]]
    for kind in HELD_BACK:
        texts.append(documents(gum, kind, to_train=True))
    (data / "coref_news").mkdir(exist_ok=True)
    (data / "coref_news/train.conll").write_text("".join(texts), "utf-8")


if __name__ == "__main__":
    main()
