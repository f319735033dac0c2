"""The page on which people try ELMo."""

import os

# Gradio reads it when it is imported: nothing is reported to anyone.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
