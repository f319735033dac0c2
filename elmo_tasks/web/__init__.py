"""Trained models over HTTP (`serve`), and the web page to try ELMo (`page`)."""

import os

# Gradio reads this when it is imported, and then reports no usage data.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
