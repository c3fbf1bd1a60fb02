# The commands of this repository; make help explains each. Needed: Go, make, and a C compiler for the race detector.

SHELL    := /bin/sh
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LISTEN   ?= 127.0.0.1:8787
DATA     ?= ./weir-data
FUZZTIME ?= 10s
N        ?= 100
HISTORIES ?= 1000000
PACKAGES ?= ./...
PLAIN    := ^(TestGuest|TestHostFunctionsLeaveNoGarbage|TestReload|TestProperties|TestPassAllocatesNothing)
TOOL     := go tool -modfile=cmd/devtools/go.mod

.DEFAULT_GOAL := help
.PHONY: help run build test faults check lint plugins bench clients agents fuzz properties crash soak clean

help: ## show this list
	@echo 'make TARGET, where TARGET is one of'
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  \1|\2/' | while IFS='|' read -r t d; do printf '%-10s %s\n' "$$t" "$$d"; done

run: build ## build and start the gateway with the demo provider on 127.0.0.1:8787, data in ./weir-data
	@echo 'run: starting bin/weir serve --demo on $(LISTEN), data in $(DATA); stop it with Ctrl-C'
	@exec bin/weir serve --demo --listen $(LISTEN) --data $(DATA)

build: ## build bin/weir: static, reproducible, with the version from git
	@echo 'build: compiling bin/weir $(VERSION) (a first build takes a minute or two, later ones a second)'
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/weir ./cmd/weir

test: ## run every test with the race detector
	@command -v $${CC:-cc} >/dev/null || { echo 'test: the race detector needs a C compiler (cc); install one, or set CC'; exit 1; }
	@echo 'test: go test -race $(PACKAGES) (unit tests, scripts of the whole program, the crash test; a first run compiles for a few minutes)'
	@CGO_ENABLED=1 go test -race -timeout 15m $(PACKAGES)
	@echo 'test: once more without the race detector, what it makes too slow: real Go guests at full speed, counts of allocations, 10,000 random histories of the gates'
	@go test -timeout 5m -run '$(PLAIN)' ./host ./host/plugin ./host/plugin/fuel ./host/resilience

faults: ## the fault wall: sixteen faults of a provider against the real program, in two dialects (a minute and a half)
	@go run ./cmd/faults

check: ## everything that a change must pass: format, vet, architecture, race tests, and a tree that stays clean
	@echo 'check: gofmt'
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "check: not formatted, run gofmt -w on:"; echo "$$out"; exit 1; }
	@echo 'check: go vet'
	@go vet $(PACKAGES)
	@echo 'check: architecture (host/architecture_test.go)'
	@go test -count=1 -run 'Architecture|EveryPackage' ./host
	@before=$$(git status --porcelain); $(MAKE) --no-print-directory test || exit 1; \
	 echo 'check: the tests left the tree as it was'; \
	 [ "$$before" = "$$(git status --porcelain)" ] || { echo 'check: the tests changed these files:'; git status --porcelain; exit 1; }
	@echo 'check: go.mod and go.sum are complete'
	@go mod verify >/dev/null
	@echo 'check: passed'

lint: ## go vet and staticcheck (pinned in cmd/devtools/go.mod)
	@echo 'lint: go vet'
	@go vet $(PACKAGES)
	@echo 'lint: staticcheck, pinned in cmd/devtools/go.mod (a first run builds it)'
	@$(TOOL) staticcheck $(PACKAGES)

plugins: ## rebuild the embedded .wasm files of the Go guests in plugins/ and show which changed
	@for d in $$(go list -f '{{.Dir}}' ./plugins/... 2>/dev/null); do \
	   grep -qs '^package main' $$d/main.go || continue; name=$$(basename $$d); \
	   echo "plugins: compiling $$name.wasm"; \
	   GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 go build -trimpath -buildvcs=false -buildmode=c-shared -ldflags '-s -w' -o $$d/$$name.wasm $$d || exit 1; \
	 done
	@git status --short -- plugins

bench: ## measure against a reference proxy with a mock upstream, and print ratios
	@echo 'bench: building and running cmd/bench (some minutes; keep the machine quiet)'
	@go run ./cmd/bench

clients: ## run real SDKs of four dialects on upstreams of four dialects, with a mock behind; ARGS="-v --only openai-chat"
	@echo 'clients: building and running cmd/clients (needs npm; downloads about 400 MB once, then takes about half an hour)'
	@go run ./cmd/clients $(ARGS)

agents: ## run command-line agents (Claude Code, codex, opencode, gemini-cli, qwen-code) on upstreams of four dialects
	@echo 'agents: building and running cmd/clients (needs npm; downloads about 1 GB once)'
	@go run ./cmd/clients --groups agents -v $(ARGS)

fuzz: ## run each fuzz target for FUZZTIME (10s)
	@for p in $$(go list $(PACKAGES)); do \
	   for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	     echo "fuzz: $$f in $$p for $(FUZZTIME)"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
	   done; \
	 done

properties: ## play HISTORIES random histories (1,000,000) on all gates of the resilience ladder (up to half an hour)
	@echo 'properties: $(HISTORIES) random histories on the gates of host/resilience'
	@go test -count=1 -timeout 0 -run '^(TestProperties|TestPermitsEndOnce)$$' ./host/resilience -rapid.checks=$(HISTORIES)

crash: ## kill the real process N times (100) under write load and check that nothing acknowledged is lost
	@echo 'crash: $(N) kills with SIGKILL under write load'
	@WEIR_CRASH_KILLS=$(N) go test -count=1 -timeout 0 -v -run Crash ./store/badger

soak: ## reload a Go guest N times (100) under load, and call one 5000 N times: nothing may grow (minutes)
	@echo 'soak: $(N) reloads under 16 busy goroutines, then 5000 x $(N) calls of a guest that allocates'
	@WEIR_SOAK=$(N) go test -count=1 -timeout 0 -v -run 'ReloadsUnderLoad|AllocatingGuest' ./host/plugin

clean: ## remove what make built; the data folder stays
	@echo 'clean: removing bin, dist and bench-results'
	@rm -rf bin dist bench-results
