"""The page of `allennlp elmo-demo`, on Gradio's components."""
