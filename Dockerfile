# An image with everything: it follows a server, lands, builds, answers. compose.yaml runs it.
#   docker build --tag binloom . && docker run --rm --volume "$PWD:/logs" binloom inspect /logs/binlog.000001

FROM python:3.13-slim-trixie AS build
# The linker is for the compiled decoder. Versions are those of the day: they have the fixes of Debian's security team.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends binutils \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# The hashes of the lock are checked for every package, also in the second step.
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock \
    && python -m tools.wheel /wheels
RUN uv venv /opt/binloom \
    && uv pip install --no-cache --compile-bytecode --python /opt/binloom/bin/python \
        --constraint requirements.lock "$(ls /wheels/*.whl)[spark]"

FROM python:3.13-slim-trixie
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-21-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home binloom \
    && install --directory --owner=binloom --group=binloom --mode=700 /data
COPY --from=build /opt/binloom /opt/binloom
ENV PATH=/opt/binloom/bin:$PATH \
    VIRTUAL_ENV=/opt/binloom \
    BINLOOM_HOME=/data
USER 10001
WORKDIR /data
VOLUME /data
ENTRYPOINT ["binloom"]
CMD ["--help"]
