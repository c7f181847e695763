"""What Prometheus can scrape of webhooks; no label holds an id."""

from prometheus_client import Counter

DELIVERIES = Counter(
    "kemem_webhook_deliveries_total", "Attempts to tell a webhook of an event.", ["outcome"]
)
