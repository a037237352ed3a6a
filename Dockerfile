# A service over a store at /store, with tokens at /tokens; see docs/howto/serve.md.
FROM python:3.12-slim
COPY dist/corollary-*.whl /tmp/
RUN set -- /tmp/corollary-*.whl && pip install --no-cache-dir "$1[serve]" && rm /tmp/corollary-*.whl \
    && useradd --create-home corollary
USER corollary
EXPOSE 7878
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:7878/health')"]
ENTRYPOINT ["corollary", "serve", "/store", "--host", "0.0.0.0", "--tokens", "/tokens"]
