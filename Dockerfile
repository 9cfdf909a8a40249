# sfumato in a container: no root, nothing written but to /data and /tmp. How to run it: docs/install.md
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m venv /opt/sfumato && /opt/sfumato/bin/pip install --no-cache-dir '.[survey,excel,stream,web]'
# What every first run would wait for is compiled here, once; the entry point lays it where it can be written to.
RUN NUMBA_CACHE_DIR=/opt/sfumato/kernels MPLCONFIGDIR=/tmp /opt/sfumato/bin/sfumato doctor --warm --quiet

FROM python:3.13-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin sfumato && mkdir /data && chown sfumato /data
COPY --from=build /opt/sfumato /opt/sfumato
COPY --chmod=755 .ci/entry /usr/local/bin/sfumato-entry
# The signing key lies in the folder that is mounted: /tmp is emptied, and a key that is lost signs nothing any more.
ENV PATH=/opt/sfumato/bin:$PATH HOME=/tmp XDG_CONFIG_HOME=/data/.config MPLCONFIGDIR=/tmp PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /data
ENTRYPOINT ["sfumato-entry"]
CMD ["--help"]
