"""Tests of the options of a job and its fingerprint."""

from dataclasses import replace

import pytest

from elmo_tasks import Elmo
from elmo_tasks.embed_job.options import EmbedOptions, differences, fingerprint
from elmo_tasks.embed_job.text_parts import TextSummary

SUMMARY = TextSummary(3, [2, 1], "0123")


class TestEmbedOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [({"dtype": "float64"}, "dtype"), ({"part_lines": 0}, "part_lines must be at least 1, but is 0")],
    )
    def test_other_values_are_an_error(self, options, message):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=message):
            EmbedOptions(**options)


class TestFingerprint:
    def test_it_tells_all_jobs_apart_whose_vectors_differ(self, tiny_bilm, monkeypatch):
        """Oracle: by hand; a biLM is identified by its weights, wherever its files are."""
        bilm = Elmo.from_pretrained(tiny_bilm).bilm
        options = EmbedOptions(weights=(0.0, 1.0, 2.0))
        before = fingerprint(options, SUMMARY, bilm)
        assert fingerprint(replace(options, bilm="elsewhere", precision="float32"), SUMMARY, bilm) == before
        changes = dict(layers="top", weights=None, gamma=2.0, pool="max", batch_tokens=1, dtype="float16")
        for name, value in {**changes, "precision": "bf16", "part_lines": 1, "device": "cuda"}.items():
            found = differences(before, fingerprint(replace(options, **{name: value}), SUMMARY, bilm))
            assert found.startswith(f"{name} was ") and ";" not in found
        tokenized = fingerprint(replace(options, tokenize=True), SUMMARY, bilm)
        assert "tokenize was" in differences(before, tokenized)
        monkeypatch.setattr("elmo_tasks.embed_job.options.version", lambda package: "4.0")
        assert "spacy was" in differences(tokenized, fingerprint(replace(options, tokenize=True), SUMMARY, bilm))
        assert fingerprint(options, SUMMARY, bilm) == before
        assert "text was" in differences(before, fingerprint(options, replace(SUMMARY, digest="4"), bilm))
        bilm.character_encoder.projection.weight[0, 0] += 1
        assert "weights of the biLM was" in differences(before, fingerprint(options, SUMMARY, bilm))
