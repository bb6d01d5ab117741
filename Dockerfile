# sparcets serve in a container. Build the wheel first:
#
#     pip wheel --no-deps --wheel-dir dist .
#     docker build -t sparcets .
#     docker run --user "$(id -u)" -p 8766:8766 -v "$PWD/model:/model:ro" -e SPARCETS_SERVE_TOKEN=… sparcets
#
# --user, because a fit can be read by its owner alone, unless it was made with sparcets fit --shared.
#
# With a secret as a file: -v "$PWD/token:/run/secrets/token:ro" and, after the image, the command of CMD with
# --token-file /run/secrets/token. scripts/try_dockerfile.py carries out these commands without Docker.
FROM python:3.12-slim

# PyTorch for CPUs; on PyPI, it comes with several gigabytes for GPUs.
ARG INDEX="--extra-index-url https://download.pytorch.org/whl/cpu"
COPY dist/*.whl /tmp/wheel/
RUN python -m venv /opt/sparcets
RUN /opt/sparcets/bin/pip install --no-cache-dir $INDEX "$(echo /tmp/wheel/*.whl)[serve,onnx]"
RUN useradd --system --create-home sparcets

USER sparcets
EXPOSE 8766
# A worker has one thread, and the server that it belongs to needs a core of its own under load.
ENV OMP_NUM_THREADS=1
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["/opt/sparcets/bin/python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8766/ready', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["/opt/sparcets/bin/sparcets", "serve", "/model", "--host", "0.0.0.0", "--port", "8766", "--workers", "1"]
