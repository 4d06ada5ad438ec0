# One image for the web server and for the workers: `iwes serve` or `iwes worker`, told apart by the command.
FROM python:3.11-slim AS build
RUN pip install --no-cache-dir uv
WORKDIR /app
COPY setup.cfg pyproject.toml overrides.txt README.md ./
COPY iwes iwes
COPY models models
COPY store store
COPY studio studio
COPY jobs jobs
COPY backend backend
RUN uv venv /opt/iwes \
    && uv pip install --python /opt/iwes/bin/python --no-cache --override overrides.txt '.[postgres,embedded,lite]'

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home iwes && install -d -o iwes -g iwes -m 0700 /var/lib/iwes
COPY --from=build /opt/iwes /opt/iwes
# It listens on every address of the container, so `iwes serve` asks for an IWES_ADMIN_TOKEN and ends without one.
ENV PATH=/opt/iwes/bin:$PATH IWES_HOME=/var/lib/iwes IWES_HOST=0.0.0.0 PYTHONUNBUFFERED=1
USER iwes
WORKDIR /var/lib/iwes
VOLUME /var/lib/iwes
EXPOSE 9090
ENTRYPOINT ["iwes"]
CMD ["serve"]
