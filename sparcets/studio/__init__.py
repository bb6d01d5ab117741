"""The studio: a local web page to create and inspect counterfactual explanations, and the HTTP API behind it."""
