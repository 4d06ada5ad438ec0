"""The columns that every export has, in their order, and what kind of thing is in each."""

COLUMNS = {
    "task": "whole",
    "image": "text",
    "class": "text",
    "weight": "number",
    "probability": "number",
    "inclusion": "number",
    "score": "number",
    "passes": "whole",
    "round": "whole",
    "stratum": "text",
    "provenance": "text",
    "model_version": "text",
    "annotations": "wholes",
    "annotators": "wholes",
    "created": "time",
    "updated": "time",
    "data": "json",
}
"""`image` is the address of the image, and `data` what else Label Studio holds of the task."""
