# A static binary on an empty image, run by nobody.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /gateway ./cmd/gateway \
 && mkdir -p /state && chown 65532:65532 /state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /gateway /gateway
COPY --from=build --chown=65532:65532 /state /state
USER 65532:65532
ENV GATEWAY_STATE_DIR=/state
VOLUME /state
EXPOSE 8080 8081
HEALTHCHECK --interval=5s --timeout=2s --start-period=5s CMD ["/gateway", "healthcheck"]
ENTRYPOINT ["/gateway"]
CMD ["serve"]
