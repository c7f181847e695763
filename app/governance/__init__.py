"""What reaches over everything: forgetting, erasure, export, webhooks and operations."""
