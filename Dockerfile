# docker build -t meridian .
# docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" meridian combine --run_dir=logs/ --output_dir=out/
FROM debian:12-slim AS build
COPY . /src
WORKDIR /src
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git
# The example's report shows that the build works; the tests are `docker build --target=test`.
RUN ./bazelw run //tools:combine && ./bazelw build //:dist && cp bazel-bin/meridian_*.deb /meridian.deb

FROM build AS test
RUN ./bazelw test //...

FROM debian:12-slim
COPY --from=build /meridian.deb /tmp/
RUN dpkg -i /tmp/meridian.deb && rm /tmp/meridian.deb
WORKDIR /work
ENTRYPOINT ["meridian"]
