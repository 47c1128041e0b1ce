# Targets that a newcomer needs: run, demo, test. Each installs what it lacks on Debian, or says what to install.

GO      ?= go
SHELL   := /bin/bash
COUNT   ?= 1
FUZZ    ?= 30s

.PHONY: help run demo build test test-clients test-libraries test-examples test-hostile test-quickstart test-dashboard test-ops test-bench
.PHONY: screenshots check bench fuzz clean

help:
	@echo "make run           the gateway on the real exchanges: no configuration, keys or Redis needed"
	@echo "make demo          the gateway on simulated exchanges, with an outage that you can watch"
	@echo "                   both: LISTEN=127.0.0.1:9080 ADMIN_LISTEN=127.0.0.1:9081 for other addresses than :8080 and :8081"
	@echo "make test          every Go test, with the race detector and a real Redis"
	@echo "make test-clients  public client libraries against the simulated exchanges and the facade"
	@echo "make test-libraries the Python and JavaScript clients against the demo"
	@echo "make test-examples every example against the demo"
	@echo "make test-hostile  what other clients see while some are hostile or greedy"
	@echo "make test-quickstart the README's first commands, in an empty folder"
	@echo "make test-dashboard the dashboard in a real Chromium, against the demo"
	@echo "make test-ops      rules, alerts and Grafana's queries against a real Prometheus"
	@echo "make test-bench    every part of make bench once, in a minute; no figure is judged"
	@echo "make screenshots   docs/dashboard-light.png and -dark.png, from the demo"
	@echo "make check         formatting, vet, static analysis"
	@echo "make bench         speed and memory, as ratios against a peer in the same run"
	@echo "make fuzz          each decoder of outside bytes for FUZZ=$(FUZZ)"

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

# Addresses, where 8080 and 8081 are taken: make demo LISTEN=127.0.0.1:9080 ADMIN_LISTEN=127.0.0.1:9081
addresses = $(if $(LISTEN),--listen=$(LISTEN)) $(if $(ADMIN_LISTEN),--admin-listen=$(ADMIN_LISTEN))

# The program itself, not `go run`: that turns Ctrl-C into an error. exec: the program is what make waits for.
run: build
	@exec ./bin/gateway serve $(addresses)

demo: build
	@exec ./bin/gateway demo $(addresses)

test: need-redis need-race
	STREAM_SEEDS=40 $(GO) test -race -shuffle=on -count=$(COUNT) -timeout=15m $$($(GO) list ./... | grep -vE '/test/(ops|hostile|quickstart)$$')
	@# The race detector makes these ten times slower, and runs a part of them above; here they run in full.
	$(GO) test -count=$(COUNT) -timeout=10m -run 'TestRandom|TestDay' ./test/stream

test-clients: build
	./test/clients/run

test-libraries: need-python need-chromium build
	./clients/python/run
	./clients/js/run

test-examples: need-python build
	./test/examples/run

# Alone on the machine: it measures how long others wait.
test-hostile: build
	$(GO) test -count=$(COUNT) -timeout=10m ./test/hostile

test-quickstart:
	./test/quickstart/run

test-dashboard: need-chromium need-redis build
	./test/dashboard/run

screenshots: need-chromium build
	./test/dashboard/screenshots

# Alone on the machine: what it waits for is counted in scrapes.
test-ops: need-prometheus
	$(GO) test -count=$(COUNT) -timeout=5m ./test/ops

test-bench:
	./test/bench/run

check:
	./tools/check

bench: need-bench need-redis
	$(GO) run ./test/bench

fuzz:
	./tools/fuzz $(FUZZ)

clean:
	rm -rf bin tmp

.PHONY: need-python need-redis need-race need-bench need-chromium need-prometheus
need-redis:
	@./tools/need redis-server:redis-server
need-race:
	@./tools/need gcc:gcc libc6-dev:/usr/include/stdio.h
need-bench:
	@./tools/need wrk:wrk nginx:nginx
need-python:
	@./tools/need python3:python3
need-chromium:
	@./tools/need chromium:chromium
need-prometheus:
	@./tools/need prometheus:promtool
