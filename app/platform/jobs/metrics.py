"""What Prometheus can scrape of the queue; kinds are those that have a handler, so bounded."""

from prometheus_client import Counter, Gauge, Histogram

JOBS = Counter("kemem_jobs_total", "Runs of jobs that ended, by how.", ["kind", "outcome"])
SECONDS = Histogram(
    "kemem_job_seconds",
    "Time a handler took.",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600),
)
LAG = Histogram(
    "kemem_job_lag_seconds",
    "Time from when a job was due to when it began.",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600),
)
RUNNING = Gauge("kemem_jobs_running", "Jobs running now.", ["kind"], multiprocess_mode="livesum")
TICKS = Counter("kemem_ticks_total", "Runs of periodic work.", ["name", "outcome"])
