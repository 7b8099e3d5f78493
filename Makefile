# soniq: run `make` to see what there is to make.
SHELL := /bin/bash
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
BUILD := CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X soniq/internal/config.Version=$(VERSION)"

.PHONY: help demo build test quick check unit e2e soak bench eval models fuzz golden man publish fmt lint clean

help: ## show the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## install what is missing, build, and run everything on this machine with two robot phones
	@scripts/setup demo
	@$(MAKE) --no-print-directory build
	@scripts/hearing ./soniq || echo "going on without it: transcripts will be poor, the rest is the same" >&2
	@./soniq demo

build: ## build ./soniq
	@scripts/setup build
	@echo "building soniq $(VERSION)"
	@$(BUILD) -o soniq ./cmd/soniq

test: ## everything that must pass: checks, unit tests on both databases, real phones; an hour on two slow cores
	@scripts/setup test
	@scripts/hearing go run -trimpath ./cmd/soniq
	@scripts/test

quick: ## checks, unit tests of changed packages, a call with each codec: less than two minutes
	@scripts/setup test
	@scripts/test quick

check: ## formatting and static checks
	@scripts/check

unit: ## unit tests alone, on SQLite
	@go test $$(go list ./... | grep -v /e2e)

e2e: ## end-to-end tests alone, with real phones
	@scripts/setup test
	@scripts/hearing go run -trimpath ./cmd/soniq
	@scripts/test e2e

soak: ## end-to-end tests with long loops on both databases, 100,000 calls, fuzzing for ten minutes each; some hours
	@scripts/setup test
	@scripts/hearing go run -trimpath ./cmd/soniq
	@SONIQ_SOAK=1 scripts/test e2e
	@$(MAKE) --no-print-directory build
	@SONIQ_SOAK_BINARY=$(CURDIR)/soniq go test -count=1 -timeout 60m -v -run Soak ./e2e/call
	@FUZZTIME=$${FUZZTIME:-10m} $(MAKE) --no-print-directory fuzz

bench: ## measure, beside Kamailio and rtpengine; results belong into docs/performance.md
	@scripts/setup bench
	@$(MAKE) --no-print-directory build
	@scripts/bench

eval: ## quality of recognition, notes and memory search, as a table; results belong into docs/intelligence.md
	@scripts/setup eval
	@scripts/hearing go run ./cmd/soniq
	@scripts/eval

models: ## make again what recognition and search learnt, into models/; some minutes on two cores
	@scripts/setup models
	@mkdir -p models
	@go run ./cmd/trainmodels lexsem -out models/lexsem.bin
	@cmp -s models/lexsem.bin internal/intelligence/engine/nlp/lexsem.bin && echo "models/lexsem.bin is the one in the tree" || echo "models/lexsem.bin is not the one in the tree"
	@go run ./cmd/trainmodels sounds -out models/sounds.bin
	@cmp -s models/sounds.bin internal/intelligence/engine/speech/sounds.bin && echo "models/sounds.bin is the one in the tree" || echo "models/sounds.bin is not the one in the tree"
	@go run ./cmd/trainmodels bandwidth -out models/bandwidth.bin
	@echo "models/bandwidth.bin was trained with other voices than the one in the tree: measure it with make eval before you put it there"

fuzz: ## fuzz a running server and every parser, FUZZTIME (60s) each
	@scripts/fuzz

golden: ## rewrite generated files that are kept in the tree
	@go test ./internal/server -run Golden -update
	@go test ./internal/telephony/provisioning -run TestRender_GoldenFiles -update
	@go test ./internal/telephony/number/locality -run Golden -update
	@go test ./internal/platform/db -run Golden -update
	@SONIQ_UPDATE=1 go test ./internal -run TimelineKinds_Documented
	@SONIQ_UPDATE=1 go test ./internal/platform/limit -run Limits_Documented
	@SONIQ_UPDATE=1 go test ./internal/contactcenter/flow -run Steps_Documented
	@go test ./internal/cli -run Golden -update

man: ## write the man pages of all commands into build/man
	@go run -trimpath ./cmd/mandocs build/man
	@echo "man pages are in build/man, such as: man build/man/soniq-calls-dial.1"

publish: golden ## promise developers the API as it is now: from then on make test refuses what breaks it
	@cp internal/api/rest/testdata/openapi.json internal/api/rest/published/openapi.json
	@git diff --stat -- internal/api/rest/published/openapi.json

fmt: ## format
	@gofmt -s -w $$(git ls-files '*.go')

clean: ## remove what was built
	@rm -rf soniq build
