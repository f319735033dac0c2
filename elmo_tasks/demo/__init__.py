"""A web page to try ELMo."""

import os

# Gradio reads this when it is imported, and then reports no usage data.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
