# A worker and a client of a shared Temporal server: docker build -t septet .
# With agent CLIs: docker build --build-arg AGENTS="claude codex copilot" -t septet .
# docs/containers.md says how it is run, and what of it was tried.

# The packages, of the locked versions and hashes, and Septet itself. Nothing is built from source, symbols for debuggers
# are taken out, and all modules are compiled.
FROM python:3.12-slim AS packages
WORKDIR /build
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends binutils
COPY requirements.lock requirements-build.lock ./
RUN python3 -m venv /opt/septet \
    && /opt/septet/bin/pip install --no-cache-dir --only-binary :all: --no-deps --require-hashes -r requirements.lock \
    && python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --only-binary :all: --no-deps --require-hashes -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY septet septet
COPY activities activities
COPY workflows workflows
COPY workers workers
COPY clients clients
COPY docs docs
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --no-index --wheel-dir wheels . \
    && /opt/septet/bin/pip install --no-cache-dir --no-deps --no-index wheels/*.whl \
    && find /opt/septet/lib -name '*.so' -exec strip --strip-unneeded {} + \
    && /opt/septet/bin/python -m compileall -q /opt/septet/lib \
    && /opt/septet/bin/pip uninstall --yes --quiet pip setuptools

# The agent CLIs that the build argument names; none without it, and then `scripted` is the agent.
FROM python:3.12-slim AS agents
ARG AGENTS=""
COPY docker/agents /build
# Debian's packages are not pinned: its mirrors keep only the newest version of each.
# hadolint ignore=DL3008
RUN mkdir -p /opt/agents/bin \
    && if [ -n "$AGENTS" ]; then \
        apt-get update && apt-get install --yes --no-install-recommends npm && /build/install /opt/agents $AGENTS; \
    fi

FROM python:3.12-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git openssh-client tini \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --create-home --shell /bin/sh septet \
    && install --directory --owner septet --group septet --mode 0700 /var/lib/septet/slots /var/lib/septet/homes \
        /var/lib/septet/checkpoints /var/lib/septet/api
COPY --from=packages /opt/septet /opt/septet
COPY --from=agents /opt/agents /opt/agents
COPY docker/entrypoint.py docker/health.py docker/api_health.py /opt/septet/docker/
COPY docker/bin/septet /opt/septet/docker/bin/
# The state directory is a link to the slot that the container has leased: docker/entrypoint.py.
ENV PATH=/opt/septet/docker/bin:/opt/septet/bin:/opt/agents/bin:/usr/local/bin:/usr/bin:/bin \
    SEPTET_STATE_DIR=/home/septet/state \
    SEPTET_SANDBOXED=true \
    SEPTET_LOG_FORMAT=json \
    PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /home/septet
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=20s --retries=3 \
    CMD ["/opt/septet/bin/python", "/opt/septet/docker/health.py"]
ENTRYPOINT ["tini", "--", "/opt/septet/bin/python", "/opt/septet/docker/entrypoint.py"]
CMD ["worker"]
