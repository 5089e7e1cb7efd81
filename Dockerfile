# The gateway in a container: docs/containers.md. Build it with `docker build -t context-window .`

FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY session session
COPY context_window context_window
RUN python -m venv /venv && /venv/bin/python -m pip install --no-cache-dir '.[gateway,postgres]'

FROM python:3.13-slim
COPY --from=build /venv /venv
# The user is "nobody", as in Prometheus' image, which reads the token in /data. Its files are its own alone.
RUN install -d -m 700 -o 65534 -g 65534 /data
ENV PATH=/venv/bin:$PATH HOME=/data PYTHONDONTWRITEBYTECODE=1
USER 65534:65534
VOLUME /data
EXPOSE 8383
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --start-interval=2s \
    CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8383, timeout=4); c.request('GET', '/metrics', headers={'x-gateway-token': open('/data/token').readline().strip()}); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["context-window"]
# Others than the container reach it, so it wants a token, and makes one at its first start.
CMD ["gateway", "--host", "0.0.0.0", "--port", "8383", "--token", "/data/token"]
