"""Room of the ledger: calls and tokens of models, and daily quotas."""
