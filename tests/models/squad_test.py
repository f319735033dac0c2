import pytest
import torch

from tests.task_models import BOTH, EACH_PLACE, PLACES

PASSAGE = "Jordan beat Chelsea in Paris, and Leeds in  Rome."
QUESTION = ("Who beat Chelsea?", PASSAGE, [("Jordan", 0)])
LATER = ("Where did Jordan beat Leeds?", PASSAGE, [("in  Rome", 40), ("Rome", 44)])


def answer_always(model: torch.nn.Module, first: int, last: int) -> None:
    """Makes the model answer with these words to any question."""
    for name, word in (("start_projection", first), ("end_projection", last)):

        def prefer_word(module, args, output, word=word):
            logits = torch.full_like(output, -50.0)
            logits[:, word] = 50.0
            return logits

        model.get_submodule(name).register_forward_hook(prefer_word)


class TestSquadModel:
    def test_the_loss_is_the_sum_of_two_cross_entropies(self, make_model):
        answerer = make_model("squad", BOTH)
        output = answerer.model(**answerer.batch(QUESTION, LATER))
        start = output["start_log_probs"].double()
        end = output["end_log_probs"].double()
        expected = -(start[0, 0] + end[0, 0] + start[1, 8] + end[1, 9]).item() / 2
        assert output["loss"].item() == pytest.approx(expected, rel=1e-6)

    def test_the_answer_is_the_best_short_span(self, make_model):
        answerer = make_model("squad", [], "{ model+: { max_span_tokens: 2 } }")
        output = answerer.model(**answerer.batch(QUESTION, LATER))
        readable = answerer.model.make_output_human_readable(output)
        tokens = [
            "Jordan",
            "beat",
            "Chelsea",
            "in",
            "Paris",
            ",",
            "and",
            "Leeds",
            "in",
            "Rome",
            ".",
        ]
        for row in range(2):
            start = output["start_log_probs"][row].double().exp().tolist()
            end = output["end_log_probs"][row].double().exp().tolist()
            probabilities = {}
            for first in range(len(tokens)):
                for last in range(first, min(first + 2, len(tokens))):
                    probabilities[first, last] = start[first] * end[last]
            best = max(probabilities, key=lambda span: probabilities[span])
            assert tuple(readable["best_span"][row].tolist()) == best
            assert readable["score"][row].item() == pytest.approx(probabilities[best], rel=1e-5)
            assert readable["passage_tokens"][row] == tokens
            answer = readable["best_span_str"][row]
            assert answer in PASSAGE
            # There is no space before a comma.
            words = tokens[best[0] : best[1] + 1]
            assert answer.split() == words or "," in words

    def test_an_answer_is_the_text_of_the_passage(self, make_model):
        answerer = make_model("squad", [])
        answer_always(answerer.model, first=8, last=9)
        output = answerer.model(**answerer.batch(LATER))
        assert output["best_span_str"] == ["in  Rome"]
        assert output["score"].item() == pytest.approx(1.0)
        assert output["loss"].item() == pytest.approx(0.0, abs=1e-6)
        assert answerer.model.get_metrics(reset=True) == {"em": 1.0, "f1": 1.0}
        assert answerer.model.get_metrics() == {"em": 0.0, "f1": 0.0}

    def test_the_metrics_are_those_of_the_official_script(self, make_model):
        """`evaluate-v1.1.py` by hand, for the answer `in  Rome` to four questions."""
        answerer = make_model("squad", [])
        answer_always(answerer.model, first=8, last=9)
        rows = []
        for answers in (
            ["in  Rome"],
            ["Paris", "Rome"],
            ["Chelsea", "Leeds in  Rome"],
            ["Jordan"],
        ):
            places = [(answer, PASSAGE.index(answer)) for answer in answers]
            rows.append(("Where?", PASSAGE, places))
        answerer.model(**answerer.batch(*rows))
        metrics = answerer.model.get_metrics(reset=True)
        assert metrics["em"] == 1 / 4
        # Precision and recall are 1/2 and 1 in the second question, 1 and 2/3 in the third.
        assert metrics["f1"] == pytest.approx((1 + 2 / 3 + 4 / 5 + 0) / 4)

    @pytest.mark.parametrize("place", EACH_PLACE)
    def test_predictions_do_not_depend_on_the_batch(self, make_model, place):
        answerer = make_model("squad", PLACES[place])
        long = "Who of all the many people in the old town won?"
        questions = [QUESTION[:2], (long, "Ann won."), ("x", "y"), LATER[:2]]
        together = answerer.model(**answerer.batch(*questions))
        for row, question in enumerate(questions):
            alone = answerer.model(**answerer.batch(question))
            n_words = alone["start_log_probs"].shape[1]
            for name in ("start_log_probs", "end_log_probs"):
                torch.testing.assert_close(
                    together[name][row, :n_words], alone[name][0], rtol=0, atol=1e-5
                )
            # Rounding decides between equally likely answers.
            first, last = together["best_span"][row]
            log_prob = alone["start_log_probs"][0, first] + alone["end_log_probs"][0, last]
            torch.testing.assert_close(log_prob.exp(), alone["score"][0], rtol=1e-5, atol=0)

    def test_inputs_of_encoders_and_linear_layers_are_dropped_out(self, make_model):
        """Section A.4 of the paper: all words of a text lose the same units."""
        answerer = make_model("squad", [])
        model = answerer.model
        inputs: dict[str, torch.Tensor] = {}
        for name, module in model.named_children():
            if name.endswith(("_encoder", "_projection")):
                module.register_forward_pre_hook(
                    lambda module, args, name=name: inputs.update({name: args[0]})
                )
        model.train()(**answerer.batch(LATER))
        assert len(inputs) == 6
        for name, units in inputs.items():
            dropped = (units[-1] == 0).all(0)
            # ReLU and characters give zeros too, but dropout drops a unit at all words.
            assert 0.1 < dropped.float().mean() < 0.6, name
