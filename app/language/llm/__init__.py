"""Language models, embedders and rerankers: the ports, the adapters, and what they are told."""
