# The image of every node of a cluster: `docker build -t rayapp:0.1.0 .`
FROM python:3.11-slim-bookworm
# wget: KubeRay's probes.
RUN apt-get update && apt-get install -y --no-install-recommends wget && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home rayapp
WORKDIR /srv/rayapp
COPY requirements.lock ./
RUN python -m venv /srv/venv && /srv/venv/bin/pip install -q --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY rayapp rayapp
COPY jobs jobs
COPY configs configs
RUN /srv/venv/bin/pip install -q --no-cache-dir --no-deps .
ENV PATH=/srv/venv/bin:$PATH
USER rayapp
