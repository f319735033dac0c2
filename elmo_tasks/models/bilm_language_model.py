"""The biLM as a language model: training, fine-tuning and perplexity."""

import logging
from typing import Any, Literal, Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.data import Vocabulary
from allennlp.models import Model

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.character_ids import BEGIN_OF_SENTENCE, END_OF_SENTENCE, NumberedWords
from elmo_tasks.bilm.packing import on_device
from elmo_tasks.bilm.precision import has_paper_size, precision_of_training
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.bilm.softmax.word_list import UNKNOWN_WORD, WordList
from elmo_tasks.bilm.weights import read_softmax
from elmo_tasks.data import LM_NAMESPACE
from elmo_tasks.metrics import Perplexity

__all__ = ["BilmLanguageModel"]

logger = logging.getLogger(__name__)


@Model.register("elmo_bilm")
class BilmLanguageModel(Model):
    """
    A biLM trained on the joint log-likelihood of both directions (section 3.1 of the paper), which
    share the character encoder and the softmax. Every sentence starts from the zero state.
    `allennlp elmo-export` writes the public format.

    Evaluation always uses the whole vocabulary. Its metrics are `forward_perplexity`,
    `backward_perplexity`, their mean `perplexity`, and `unknown_share`, the share of words that are
    not in the vocabulary and count as one word. In training with a sampled softmax, the metric is
    called `sampled_perplexity`, because it is not comparable.

    # Parameters

    vocab : `Vocabulary`
        With the words in the namespace `lm`, the most frequent first, as `elmo_lm` makes it.
    options : `Dict[str, Any]`
        The content of the biLM's `options.json`.
    softmax : `Literal["sampled", "full"]`
        Whether the softmax is trained on `n_samples` words or on all words: see `LmSoftmax`. If the
        vocabulary has no more than `n_samples` words, all are used.
    dropout : `float`
        Applied to the input of each LSTM and to the output of the highest.
    pretrained_file : `str`, optional
        Path or URL of the weights to start from, in the public format.
    pretrained_softmax : `bool`
        Whether to read the softmax over the vocabulary's words from that file too, if it has one.
    precision : `Literal["float32", "bf16", "auto"]`
        See `elmo_tasks.bilm.Bilm`. `"auto"` is bf16 on a CPU or GPU with instructions for it, where
        it is faster.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        options: dict[str, Any],
        softmax: Literal["sampled", "full"] = "sampled",
        n_samples: int = 8192,
        dropout: float = 0.1,
        pretrained_file: Optional[str] = None,
        pretrained_softmax: bool = True,
        precision: Literal["float32", "bf16", "auto"] = "float32",
        **kwargs: Any,
    ) -> None:
        # `kwargs` has `regularizer` and the other parameters of `Model`, from the config.
        super().__init__(vocab, **kwargs)
        words = vocab.get_token_to_index_vocabulary(LM_NAMESPACE)
        self._boundaries = [words[BEGIN_OF_SENTENCE], words[END_OF_SENTENCE]]
        self._dropout = dropout
        try:
            bilm_options = BilmOptions.from_dict(options)
            if precision == "auto":
                # As AllenNLP's trainer chooses it.
                device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                precision = precision_of_training(device, has_paper_size(bilm_options))
                logger.info("training in %s", precision)
            if bilm_options.dictionaries is not None:
                raise ValueError(
                    "expected one that can be trained, got one with dictionaries (ELMoForManyLangs)"
                )
            self.bilm = Bilm(bilm_options, precision=precision)
            is_sampled = softmax == "sampled" and len(words) > n_samples
            self.softmax = LmSoftmax(
                len(words),
                bilm_options.projection_dim,
                n_samples=n_samples if is_sampled else None,
            )
            if pretrained_file is not None:
                weight_file = cached_path(pretrained_file)
                self.bilm.load_weights(weight_file)
                if pretrained_softmax:
                    self._load_softmax(weight_file)
        except (ValueError, OSError) as error:
            raise ConfigurationError(f"the biLM of this model: {error}") from error
        self._perplexity = Perplexity(unknown_id=words[UNKNOWN_WORD])

    def _load_softmax(self, weight_file: str) -> None:
        state = read_softmax(weight_file, self.bilm.options)
        if state is None:
            logger.warning("%s has no softmax: it starts from random weights", weight_file)
        else:
            self.softmax.load_state_dict(state)

    def forward(self, words: NumberedWords, word_ids: torch.Tensor) -> dict[str, Any]:
        """
        From the words of a batch and their numbers in the vocabulary, of shape
        `(batch_size, timesteps)`, -1 where there is no word, to the `loss`, in nats per prediction,
        and the biLM's `contexts`.
        """
        dropout = self._dropout if self.training else 0.0
        contexts = self.bilm.contexts(words, dropout=dropout)
        boundaries = word_ids.new_tensor(self._boundaries)
        numbers = torch.cat([word_ids[word_ids >= 0], boundaries])
        numbers = on_device(numbers, contexts.targets.device)
        # Shape: (2, n_predictions, projection_dim)
        hidden = contexts.hidden
        # Shape: (2, n_predictions)
        targets = numbers[contexts.targets]
        if self.training:
            # Both directions together, with the same negatives, so the part of each in the loss is
            # unknown.
            loss = self.softmax(hidden.flatten(0, 1), targets.flatten())
            losses = loss.detach().expand(2) / 2
            loss = loss / targets.numel()
        else:
            forward = self.softmax.log_likelihood(hidden[0], targets[0])
            backward = self.softmax.log_likelihood(hidden[1], targets[1])
            # Shape: (2, n_predictions)
            log_likelihood = torch.stack([forward, backward])
            losses = -log_likelihood.sum(1)
            loss = -log_likelihood.mean()
        self._perplexity(losses, targets.size(1), word_ids)
        return {"loss": loss, "contexts": contexts}

    def word_list(self) -> WordList:
        """The words of the softmax, in its order."""
        vocabulary = self.vocab.get_index_to_token_vocabulary(LM_NAMESPACE)
        words = [vocabulary[number] for number in range(len(vocabulary))]
        # AllenNLP reads `@@NEWLINE@@` in a vocabulary file as a line break, which no word contains.
        return WordList(word.replace("\n", "@@NEWLINE@@") for word in words)

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """See the class. In training also `tokens_per_second`."""
        metrics = self._perplexity.get_metric(reset)
        tokens_per_second = metrics.pop("tokens_per_second")
        if not self.training:
            return metrics
        name = "perplexity" if self.softmax.n_samples is None else "sampled_perplexity"
        return {name: metrics["perplexity"], "tokens_per_second": tokens_per_second}
