from elmo_tasks.demo.views import (
    Line,
    Mark,
    View,
    answer,
    clusters,
    entailment,
    entities,
    parts_of_speech,
    roles,
    sentiment,
    with_differences,
)


class TestViews:
    def test_predictions_become_marks(self):
        """Oracle: by hand, from predictions in the forms of the six predictors and that for parts of speech."""
        words = ["Ann", "Lee", "sings"]
        span = {"label": "PER", "start": 0, "end": 1, "text": "Ann Lee", "score": 0.9}
        assert entities({"words": words, "tags": ["B-PER", "L-PER", "O"], "spans": [span]}).lines == [
            Line(words, [Mark(0, 1, "PER", 0.9)])
        ]
        verb = {"verb": "sings", "description": "", "tags": ["B-ARG0", "I-ARG0", "B-V"]}
        assert roles({"words": words, "verbs": [verb]}).lines == [
            Line(words, [Mark(0, 1, "ARG0"), Mark(2, 2, "V")], "sings")
        ]
        assert parts_of_speech({"words": ["They", "sing"], "tags": ["PRP", "VBP"]}).lines == [
            Line(["They", "sing"], [Mark(0, 0, "PRP"), Mark(1, 1, "VBP")])
        ]
        prediction = {"passage_tokens": words, "question_tokens": ["Who"], "best_span": [0, 1], "score": 0.5}
        assert answer(prediction).lines == [Line(words, [Mark(0, 1, "answer", 0.5)])]

    def test_labels_keep_their_probabilities(self):
        """Oracle: the predictions; the attention of each sentence has its own words as rows."""
        prediction = {"label": "3", "probabilities": {"2": 0.4, "3": 0.6}}
        assert sentiment(prediction) == View(label="3", probabilities={"2": 0.4, "3": 0.6})
        pair = {"premise_tokens": ["a", "b"], "hypothesis_tokens": ["c"]}
        weights = {"premise": [[1.0], [1.0]], "hypothesis": [[0.2, 0.8]]}
        first, second = entailment({**prediction, **pair, "attention": weights}).attention
        assert (first.rows, first.columns, first.weights) == (["a", "b"], ["c"], [[1.0], [1.0]])
        assert (second.rows, second.columns, second.weights) == (["c"], ["a", "b"], [[0.2, 0.8]])

    def test_mentions_have_the_number_of_their_cluster(self):
        """Oracle: by hand; clusters are numbered in the order of the text, and outer mentions are before inner ones."""
        sentences = [["Ann", "'s", "dog", "ran"], ["She", "and", "it", "met"]]
        view = clusters({"sentences": sentences, "clusters": [[[4, 4], [0, 0]], [[0, 2], [6, 6]]]})
        assert [(mark.start, mark.end, mark.label) for mark in view.lines[0].marks] == [
            (0, 2, "2"),
            (0, 0, "1"),
            (4, 4, "1"),
            (6, 6, "2"),
        ]
        assert view.lines[0].words == [*sentences[0], *sentences[1]]


class TestWithDifferences:
    def test_marks_that_not_all_have_differ(self):
        """Oracle: by hand: another span and another label differ; another probability does not."""
        words = ["a", "b", "c"]
        first = View([Line(words, [Mark(0, 0, "PER", 0.9), Mark(1, 2, "LOC", 0.8)])])
        second = View([Line(words, [Mark(0, 0, "PER", 0.5), Mark(1, 1, "LOC", 0.8), Mark(2, 2, "ORG")])])
        found = [[mark.differs for mark in view.lines[0].marks] for view in with_differences([first, second])]
        assert found == [[False, True], [False, True, True]]
        assert not any(mark.differs for mark in with_differences([first])[0].lines[0].marks)

    def test_labels_of_texts_differ(self):
        """Oracle: by hand."""
        same = with_differences([View(label="neutral"), View(label="neutral")])
        assert [view.differs for view in same] == [False, False]
        other = with_differences([View(label="neutral"), View(label="entailment")])
        assert [view.differs for view in other] == [True, True]

    def test_a_mention_differs_if_it_is_linked_to_another(self):
        """Oracle: by hand: a mention with another antecedent differs, and not one whose cluster has another number."""
        sentences = [["He", "told", "him", "that", "he", "won"]]
        first = clusters({"sentences": sentences, "clusters": [[[0, 0], [4, 4]]]})
        second = clusters({"sentences": sentences, "clusters": [[[2, 2], [4, 4]]]})
        found = with_differences([first, second])
        assert [[mark.differs for mark in view.lines[0].marks] for view in found] == [[True, True], [True, True]]
        third = clusters({"sentences": sentences, "clusters": [[[0, 0], [4, 4]], [[2, 2], [5, 5]]]})
        assert [mark.differs for mark in with_differences([first, third])[1].lines[0].marks] == [
            False,
            True,
            False,
            True,
        ]
