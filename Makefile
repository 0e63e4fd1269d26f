# `make run` and `make test` do all of their own set-up.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export GOTOOLCHAIN := local
# One set of flags for every stage, so that what one has compiled serves the others; what ships has no C.
export GOFLAGS := -trimpath -buildvcs=false
export CGO_ENABLED := 0

PROGRAMS := app-platform appctl node-agent hello-cluster-controller slurm-reference-controller oci-launch-controller rke2-self-managed-controller \
	oci-launch-controller/testimages/web-notebook oci-launch-controller/testimages/model-server
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.0
GOSEC := github.com/securego/gosec/v2/cmd/gosec@v2.22.10
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.1.4
# Without vet, which make lint runs over everything, and without what a debugger needs, which is a third of the linking.
TESTS := go test -vet=off -ldflags=-w -timeout 30m
FUZZTIME ?= 20s
LISTEN ?= 127.0.0.1:8080
WEBHOOKS ?= 127.0.0.1:9000
DATA ?= .data
# Where the compiled Kubernetes is kept, outside of the tree.
RKE2_STANDIN ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/app-platform/rke2-standin

.PHONY: help
help: ## Say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: tools
tools:
	@command -v go >/dev/null || { echo "needed: Go 1.26 or newer, from https://go.dev/dl"; exit 1; }
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "needed: Node.js 20 or newer with npm, from https://nodejs.org"; exit 1; }
	@node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' || { echo "needed: Node.js 20 or newer, from https://nodejs.org; this is $$(node --version)"; exit 1; }
	@[ "$$(printf '%s\n' go1.26 "$$(go env GOVERSION)" | sort -V | head -n 1)" = go1.26 ] || { echo "needed: Go 1.26 or newer, from https://go.dev/dl; this is $$(go env GOVERSION)"; exit 1; }

web/node_modules/.package-lock.json: web/package.json web/package-lock.json | tools
	cd web && npm ci --no-audit --no-fund
	@touch $@

web/dist/index.html: web/node_modules/.package-lock.json $(shell find web/src web/public sdk/typescript-client/src -type f 2>/dev/null) web/index.html web/graphiql.html web/vite.config.ts
	cd web && npm run build
	@touch $@

.PHONY: build
build: tools web/dist/index.html ## Build the console and every program into bin/
	@mkdir -p bin
	go build -o bin/ $(addprefix ./cmd/,$(PROGRAMS)) ./rig/cmd/lab

.PHONY: run
run: build ## Bring a whole local installation up; Ctrl-C takes it down again
	@exec bin/lab -bin bin -data $(DATA) -listen $(LISTEN) -webhooks $(WEBHOOKS) -kubernetes $(RKE2_STANDIN)

.PHONY: outsider
outsider: ## Play the outsider beside a running make run: an app that nobody has seen, in Python, Go and TypeScript
	@eval "$$(cat $(DATA)/publisher.env)" && export PATH=$(CURDIR)/bin:$$PATH REGISTRY_FLAGS=--plain-http SDK=$(CURDIR) GOFLAGS= && \
	for lang in python go typescript; do NAME=demo-$$lang-$$(date +%s) examples/outsider/walk.sh $$lang || exit 1; done

.PHONY: test
test: build ## Run every test; installs what the tests need
	bin/lab -prepare
	$(MAKE) -j 2 --output-sync=target test-workers test-packages test-console
	$(MAKE) -j 2 --output-sync=target test-e2e-clusters test-e2e test-e2e-own test-faults # whole installations, which wait more than they work

.PHONY: app-release
app-release: build slurm-before ## Release a patch, and a version, of a real app's controller while the platform runs; upgrade a real cluster to each and back
	bin/lab -prepare
	go test ./rig/e2e -run TestAnAppsReleaseNeedsNoReleaseOfThePlatform -v -count=1 -timeout 20m -args -e2e.releases
	go test ./rig/e2e -run TestASlurmClusterGoesToTheNextVersionAndBack -v -count=1 -timeout 20m -args -e2e.releases \
		-e2e.before $(CURDIR)/bin/before/slurm-reference-controller

# The last commit of version 1.5.0 of the app.
SLURM_BEFORE := 6544b093311c4a685b131e183b78002cee4b4b9f
.PHONY: slurm-before
slurm-before: ## Build Slurm's controller of the release before this one into bin/before
	@[ "$$(cat bin/before/commit 2>/dev/null)" != "$(SLURM_BEFORE)" ] || exit 0; \
	git cat-file -e "$(SLURM_BEFORE)^{commit}" 2>/dev/null || { echo "the history has no commit $(SLURM_BEFORE): fetch it whole (git fetch --unshallow)"; exit 1; }; \
	tree=$$(mktemp -d) && trap 'git worktree remove --force '$$tree EXIT && git worktree add -q --detach $$tree $(SLURM_BEFORE) && mkdir -p bin/before && \
	cd $$tree && go build -o $(CURDIR)/bin/before/ ./cmd/slurm-reference-controller && echo "$(SLURM_BEFORE)" > $(CURDIR)/bin/before/commit

.PHONY: onboarding
onboarding: build kubernetes ## Walk every reference app and require that it is ready for onboarding; make test walks the quick ones
	bin/lab -prepare
	go test ./rig/e2e -run "TestAReferenceAppIsReadyForOnboarding|TestTheAdapterReplacesAWorkerThatSlurmHasGivenUp" -v -count=1 -timeout 20m -args -e2e.onboarding
	RKE2_STANDIN=$(RKE2_STANDIN) go test ./rig/kubernetes -run TestKubernetesIsReadyForOnboarding -v -count=1 -timeout 20m

# Two beside each other, since the workers' tests and whole installations wait more than they work. The end-to-end tests
# are three runs, each on installations of its own; test-e2e has every test that the other two do not name.
.PHONY: test-e2e-clusters test-e2e test-e2e-own test-faults test-workers test-packages test-console
E2E := $(TESTS) -parallel 4 ./rig/e2e
CLUSTERS := Slurm|RealCluster|LaunchSurvives|Files|Weights|DiskOfANode
OWN := NodesLiveAndDie|OneIdLeads
test-e2e-clusters:
	$(E2E) -run '$(CLUSTERS)' -skip '$(OWN)'
test-e2e:
	$(E2E) -skip '$(CLUSTERS)|$(OWN)'
test-e2e-own:
	$(E2E) -run '$(OWN)' -args -e2e.own
test-faults:
	$(TESTS) -p 2 ./rig/chaos ./rig/drills
test-workers:
	$(TESTS) -p 1 -parallel 4 ./workers/...
test-packages:
	$(TESTS) -p 3 $$(go list ./... | grep -v -E '/rig/(e2e|chaos|drills)$$|/workers')
test-console: web/node_modules/.package-lock.json
	cd web && npm test

.PHONY: chaos
chaos: build floor ## Kill parts of an installation for long and judge what is left: make chaos SEED=7 OPERATIONS=10000
	bin/lab -prepare
	go test ./workers -run 'TestTwoBuildsCarryOnEachOthersOperations|TestAWorkerBelowTheFloorIsRefusedAtItsClaim' -v -count=1 -timeout 10m
	go test ./rig/chaos -v -count=1 -timeout $(if $(OPERATIONS),6h,30m) -args -chaos.long $(if $(SEED),-chaos.seed=$(SEED)) $(if $(OPERATIONS),-chaos.operations=$(OPERATIONS))
	go test ./workers -v -count=1 -timeout 30m -run TestReplicasArePromotedWhileOperationsRun -args -workers.promotions=300

.PHONY: drills
drills: build ## Walk each edge of the runbooks against its fault; make test walks one of each runbook
	bin/lab -prepare
	$(TESTS) ./rig/drills -v -count=1 -timeout 1h -run 'TestDrills|TestEveryEdge' -args -drills.long

# The floor is the oldest build whose workers may run beside this one: the commit that brought the guard of claims. A
# migration never moves and never changes, so that its path finds the commit whatever became of the code.
FLOOR_MARK := migrations/20261122230118_step_plan_guards.sql
.PHONY: floor
floor: ## Build the server of the floor, the oldest build that may run beside this one, its workers, and those of the build below it into bin/floor
	@commit=$$(git log --diff-filter=A --format=%H -- $(FLOOR_MARK) | tail -n 1); \
	[ -n "$$commit" ] || { echo "the history has no commit that brings $(FLOOR_MARK): fetch it whole (git fetch --unshallow)"; exit 1; }; \
	[ "$$(cat bin/floor/commit 2>/dev/null)" != "$$commit below" ] || exit 0; \
	tree=$$(mktemp -d) && trap 'git worktree remove --force '$$tree EXIT && git worktree add -q --detach $$tree $$commit && mkdir -p bin/floor && \
	{ [ ! -d web/dist ] || cp -a web/dist/. $$tree/web/dist/; } && cd $$tree && go build -o $(CURDIR)/bin/floor/ ./cmd/app-platform && \
	go test -vet=off -c -o $(CURDIR)/bin/floor/workers.test ./workers && git checkout -q --force "$$commit^" && \
	go test -vet=off -c -o $(CURDIR)/bin/floor/below.test ./workers && echo "$$commit below" > $(CURDIR)/bin/floor/commit

.PHONY: kubernetes
kubernetes: tools ## Compile Kubernetes, etcd and containerd, and the stand-in of RKE2 that runs them: 6 to 10 minutes the first time
	rig/rke2-standin/build.sh $(RKE2_STANDIN)

.PHONY: test-kubernetes
test-kubernetes: build kubernetes ## Run the controller of RKE2 on a real Kubernetes; needs root, and some 3 GB of memory
	cd rig/rke2-standin && go test ./rke2
	RKE2_STANDIN=$(RKE2_STANDIN) go test ./rig/kubernetes -v -count=1 -timeout 45m

.PHONY: test-race
test-race: ## Run the concurrent packages under the race detector
	CGO_ENABLED=1 go test -race -timeout 20m -p 2 ./authz/... ./domain/... ./graph/... ./internal/tx/... ./sdk/... ./service/... ./workers/...

.PHONY: fuzz
fuzz: ## Feed every parser that faces the outside with nonsense: make fuzz FUZZTIME=1m; make test runs their seeds
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z]+' $$(git ls-files '*_test.go') | sort | while IFS=: read -r file name; do \
		echo "$${name#func } in $$(dirname $$file)"; \
		go test "./$$(dirname $$file)" -run '^$$' -fuzz "^$${name#func }$$" -fuzztime $(FUZZTIME) || exit 1; \
	done

.PHONY: generate
generate: web/node_modules/.package-lock.json ## Write everything that is generated
	go run ./ent/entc.go
	go run ./internal/tools/gqlgen
	go tool genqlient sdk/client/genqlient.yaml
	go generate ./transport/internal/testschema ./rig/bench/peers/gqlgen
	go run ./internal/tools/runbooks
	cd web && npm run generate
	go run ./internal/tools/clients

.PHONY: billing-histories
billing-histories: ## Hold the rating engine to its oracle on 100,000 random histories, shared out over two processes
	mkdir -p bin && go test -c -o bin/rating.test ./domain/rating
	cd domain/rating && seq 2 | xargs -P 2 -I{} $(CURDIR)/bin/rating.test -test.run '^TestBooksEqualTheOracle$$' -test.timeout 60m \
		-test.v -rapid.checks=50000

.PHONY: verify
verify: generate ## Generate again and fail if anything changed
	@git diff --exit-code --stat -- '**/generated/**' graph sdk web/src/generated docs/runbooks || { echo "generated code is not what its sources say: run make generate and commit"; exit 1; }
	@test -z "$$(git status --porcelain -- ent/generated graph sdk/client/generated sdk/typescript-client/src/generated sdk/python-client/gpuaas_client/generated web/src/generated)" || { git status --short; echo "generated files are not committed"; exit 1; }

.PHONY: lint lint-go lint-web
lint: web/node_modules/.package-lock.json ## Look for mistakes; make gosec looks for weaknesses
	@$(MAKE) --no-print-directory -j 2 --output-sync=target lint-go lint-web
lint-go:
	@test -z "$$(gofmt -l $$(git ls-files '*.go' | grep -v /generated/))" || { gofmt -l $$(git ls-files '*.go' | grep -v /generated/); exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
lint-web: web/node_modules/.package-lock.json # the same bytes once
	@bash .ci/once lint-web "$$(node --version)" web sdk/typescript-client -- bash -c 'cd web && npm run lint'

.PHONY: gosec
gosec: ## Look for weaknesses; some minutes on two cores
	bash .ci/gosec $(GOSEC)

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what is built in; says so when it cannot
	bash .ci/vulncheck $(GOVULNCHECK)

.PHONY: mutants
mutants: ## Change a package in many small places and see which changes no test notices: make mutants PKG=./domain/policy
	nice -n 10 go run ./internal/tools/mutants $(if $(SAMPLE),-sample $(SAMPLE)) $(if $(SEED),-seed $(SEED)) $(ARGS) $(PKG)

.PHONY: migrate-new
migrate-new: ## Write the next migration from ent/schema: make migrate-new NAME=add_something
	go run ./internal/tools/migratediff $(NAME)

.PHONY: bench
bench: build ## Measure, each figure beside its reference in the same run
	go run ./rig/bench

.PHONY: bench-peers
bench-peers: build ## Measure detail and list beside plain gqlgen and PostGraphile, which it installs
	cd rig/bench/peers/postgraphile && npm ci --ignore-scripts
	go run ./rig/bench -only peers -postgraphile rig/bench/peers/postgraphile

.PHONY: ci
ci: ## What CI runs
	bash .ci/run
