import numpy as np
import pytest
import torch

from tests.task_models import BOTH, EACH_PLACE, PLACES

PASSAGE = "Jordan beat Chelsea in Paris, and Leeds in  Rome."
QUESTION = ("Who beat Chelsea?", PASSAGE, [("Jordan", 0)])
LATER = ("Where did Jordan beat Leeds?", PASSAGE, [("in  Rome", 40), ("Rome", 44)])


class TestSquadModel:
    def test_the_loss_is_the_sum_of_two_cross_entropies(self, make_model):
        answerer = make_model("squad", BOTH)
        output = answerer.model(**answerer.batch(QUESTION, LATER))
        start, end = (
            output[name].double().detach().numpy() for name in ("start_log_probs", "end_log_probs")
        )
        expected = -(start[0, 0] + end[0, 0] + start[1, 8] + end[1, 9]) / 2
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
            start, end = (
                np.exp(output[name][row].double().detach().numpy()) for name in list(output)[:2]
            )
            spans = {(i, j): start[i] * end[j] for i in range(11) for j in range(i, min(i + 2, 11))}
            first, last = best = max(spans, key=lambda span: spans[span])
            assert tuple(readable["best_span"][row].tolist()) == best
            assert readable["score"][row].item() == pytest.approx(spans[best], rel=1e-5)
            assert readable["passage_tokens"][row] == tokens
            assert (
                readable["best_span_str"][row].split() == tokens[first : last + 1]
                or "," in tokens[first : last + 1]
            )
            assert readable["best_span_str"][row] in PASSAGE

    def test_an_answer_is_the_text_of_the_passage(self, make_model):
        answerer = make_model("squad", [])
        tensors = answerer.batch(LATER)
        wanted = torch.full((1, 11), -50.0), torch.full((1, 11), -50.0)
        wanted[0][0, 8] = wanted[1][0, 9] = 50.0
        projections = answerer.model.start_projection, answerer.model.end_projection
        for projection, logits in zip(projections, wanted, strict=True):
            projection.register_forward_hook(
                lambda module, args, output, logits=logits: logits[..., None]
            )
        output = answerer.model(**tensors)
        assert output["best_span_str"] == ["in  Rome"]
        assert output["score"].item() == pytest.approx(1.0)
        assert output["loss"].item() == pytest.approx(0.0, abs=1e-6)
        assert answerer.model.get_metrics(reset=True) == {"em": 1.0, "f1": 1.0}
        assert answerer.model.get_metrics() == {"em": 0.0, "f1": 0.0}

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
            start, end = (alone[name][0] for name in ("start_log_probs", "end_log_probs"))
            scores = [
                start[first] + end[last]
                for first, last in (together["best_span"][row], alone["best_span"][0])
            ]
            torch.testing.assert_close(*scores, rtol=0, atol=1e-5)

    def test_inputs_of_encoders_and_linear_layers_are_dropped_out(self, make_model):
        """Section A.4 of the paper: all words of a text lose the same units."""
        answerer = make_model("squad", [])
        model = answerer.model
        inputs: dict[str, torch.Tensor] = {}
        names = (
            "contextual_encoder",
            "start_encoder",
            "end_encoder",
            "start_projection",
            "end_projection",
        )
        for name in (*names, "attention_projection"):
            part = getattr(model, name)
            part.register_forward_pre_hook(
                lambda module, args, name=name: inputs.__setitem__(name, args[0])
            )
        model.train()(**answerer.batch(LATER))
        assert len(inputs) == 6
        for name, units in inputs.items():
            dropped = (units[-1] == 0).all(0)
            # ReLU and characters give zeros too, but dropout drops a unit at all words.
            assert 0.1 < dropped.float().mean() < 0.6, name
