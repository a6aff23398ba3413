/** Table of test, build and lint tools, and of programs with subcommands. tables.ts explains the form of a line. */

const CARGO_OPTIONS =
  "-qv -p:F:j:% --release --profile=% --package=% --workspace --all --all-targets --all-features --no-default-features --features=% --lib --bins --bin=% --test=% --tests --example=% --examples --bench=% --benches --doc --locked --offline --frozen --jobs=% --quiet --verbose --message-format=% --no-run --no-fail-fast --keep-going --exclude=% --target=% --color=% --timings? --manifest-path=";
const GO_OPTIONS =
  "one-dash --v --race --run=% --count=% --timeout=% --short --cover --covermode=% --coverpkg= --tags=% --bench= --benchmem --benchtime=% --json --parallel=% --cpu=% --failfast --list=% --mod=% --trimpath --n --x --a --p=% --o=>write --coverprofile=>write --msan --asan --skip=% --shuffle=%";
const NPM_OPTIONS =
  "-sqr -w:F: --silent --quiet --workspace= --workspaces --if-present --filter= --recursive --parallel --stream --no-color --color? --verbose --no-bail --sort --no-sort --aggregate-output --foreground-scripts --ignore-scripts --loglevel=%";
const JS_TEST =
  "-w -u>format -t: -b? --run --watch? --watchAll? --no-watch --coverage? --no-coverage --silent? --verbose --bail? --update>format --updateSnapshot>format --testPathPattern= --testPathPatterns= --reporter=% --reporters=% --testNamePattern= --grep= --maxWorkers=% --ci --runInBand --passWithNoTests --changed? --project=% --environment=% --globals --no-color --color --colors --hideSkippedTests --retry=% --shard=% --testTimeout=% --timeout=% --related --findRelatedTests --onlyChanged --listTests --detectOpenHandles --forceExit --no-file-parallelism --pool=% --logHeapUsage --typecheck --headed --workers=% --list --last-failed --ui? --debug --exit --parallel --recursive --jobs=% --check-leaks";
const PY_LINT =
  "-qv -j:% --check --diff --quiet --verbose --fix>format --no-fix --show-source --statistics --color --no-color";
const PYTEST_OPTIONS =
  "-qvxslraA -k:m: -n:r:% --verbose --quiet --exitfirst --maxfail=% --lf --last-failed --ff --failed-first --nf --new-first --sw --stepwise --tb=% --durations=% --no-header --no-summary --collect-only --co --capture=% --cov? --cov-report=% --no-cov --cov-branch --markers --fixtures --color=% --numprocesses=% --showlocals --strict-markers --strict-config --disable-warnings --ignore= --deselect= --runxfail --timeout=% --reruns=% --asyncio-mode=% --setup-show --import-mode=% --benchmark-only --benchmark-skip --no-cov-on-fail --snapshot-update>format --doctest-modules --full-trace";

/** Scripts that projects usually have. `yarn` and `pnpm` run them by their name alone. */
const SCRIPT =
  "(?:build|bundle|compile|lint|typecheck|type-check|tsc|check|checks|format|fmt|prettier|eslint|validate|verify|unit|e2e|coverage|vitest|jest)(?::[\\w:-]+)?|test(?::[\\w:-]+)?";
/** Tasks that runners start by their name alone. */
const TASK = `${SCRIPT}|dev|start|serve|watch|docs|storybook|generate|codegen|clean`;
/** Without an address, a path or the name of a repository. The second word can be a field. */
const PACKAGE_NAME = "(?:@[\\w.-]+/)?[\\w.[\\]-]+(?:@[\\w.^~=*+-]*)?";
const SCRIPT_OPTIONS = `${NPM_OPTIONS} ${JS_TEST} --fix --write --noEmit ...`;
const STANDARDS = ["89", "90", "99", "11", "14", "17", "20", "23", "26"].flatMap((year) =>
  ["c", "gnu", "c++", "gnu++"].map((language) => `=-std=${language}${year}`),
);
const SANITIZERS = ["address", "undefined", "thread", "leak", "memory", "address,undefined"].map(
  (name) => `=-fsanitize=${name}`,
);
/** Without options that load a plugin, another configuration or another program. */
const C_OPTIONS = `-cgESsvw -o:>write -O? -W?% -I:L:l:D:U:% --version ${STANDARDS.join(" ")} ${SANITIZERS.join(" ")} =-fPIC =-fPIE =-pie =-pthread =-pedantic =-pedantic-errors =-ansi =-shared =-static =-pipe =-march=native =-mtune=native =-fno-omit-frame-pointer =-fno-exceptions =-fno-rtti =-fno-strict-aliasing =-fdiagnostics-color=always =-fcolor-diagnostics =-fopenmp =-flto =-MMD =-MP =-fsyntax-only`;

export const BUILD_TABLE = `
make: build -BiknqrstSw -j? -l? -C: -O? --jobs? --silent --quiet --keep-going --always-make --dry-run --just-print --directory= --no-print-directory --print-directory --question --trace --output-sync? --question [^=]*|(?:V|VERBOSE|DEBUG|CI)=[01]?
ninja: build -nv -j:k:C:% --verbose --quiet
cmake: build -S:B:G: -D:A:T:U:% -j? -LAHN --build= --target=% -t:% --parallel? --config=% --clean-first --verbose --preset=% --list-presets --fresh --version =-Wdev =-Wno-dev
ctest: build -VQN -R:E:j:L:C:% --output-on-failure --verbose --parallel? --test-dir= --rerun-failed --progress --timeout=%
meson: read --version
meson (?:setup|compile|test|configure|introspect): build -C: -j:% -v --verbose --suite=% --reconfigure --wipe
bazel: build -c:% -k --config=% --test_output=% --keep_going --verbose_failures --jobs=% --nocache_test_results build|test|query|cquery|info|version|//.*|:.*|@.*|deps\\(.*\\)
tsc: build -bw -p: --noEmit --project= --build --watch --pretty? --incremental? --skipLibCheck? --strict? --listFiles --listFilesOnly --showConfig --traceResolution --diagnostics --extendedDiagnostics --noEmitOnError --emitDeclarationOnly --declaration? --target=% --module=% --moduleResolution=% --jsx=% --lib=% --esModuleInterop --allowJs --checkJs --resolveJsonModule --verbose --dry --force --noUnusedLocals --noUnusedParameters --explainFiles --version -v --preserveWatchOutput --isolatedModules --allowImportingTsExtensions
vue-tsc: build -bw -p: --noEmit --project= --build --watch --skipLibCheck --pretty?
vitest: build ${JS_TEST} (?!init$).*
jest: build ${JS_TEST} -io
mocha: build ${JS_TEST} -g: -R:% --reporter=% (?!init$).*
ava: build ${JS_TEST} -sTv -m: --match= --fail-fast --serial --tap
playwright: read -V --version
playwright test: build ${JS_TEST} -g:
playwright show-report: build
cypress: build -q --headless --headed --browser=% --spec= --quiet --e2e --component run|info|verify|version
eslint: build -f:% -h --fix>format --fix-dry-run --fix-type=% --ext=% --max-warnings=% --quiet --cache --no-cache --format=% --color --no-color --no-error-on-unmatched-pattern --report-unused-disable-directives --no-inline-config --no-warn-ignored --ignore-pattern= --rule= --debug --stats --pass-on-no-patterns
biome: read --version
biome (?:check|ci|format|lint): build --write>format --apply>format --apply-unsafe>format --unsafe --fix>format --staged --changed --since=% --no-errors-on-unmatched --max-diagnostics=% --diagnostic-level=% --error-on-warnings --reporter=% --colors=% --verbose --files-ignore-unknown=%
prettier: build -clu -w>format --check --write>format --list-different --ignore-unknown --no-error-on-unmatched-pattern --log-level=% --loglevel=% --tab-width=% --print-width=% --single-quote --no-semi --trailing-comma=% --parser=% --cache --end-of-line=% --prose-wrap=% --use-tabs --no-color
stylelint: build -qf:% --fix>format --quiet --formatter=% --max-warnings=% --cache --allow-empty-input --color --no-color
oxlint: build --fix>format --quiet -D:A:W:% --max-warnings=%
webpack: build -w --mode=% --watch --progress --json --stats? --env=% --color --no-color build|watch|b|w
vite: build -d? -l:m:% --mode=% --logLevel=% --minify? --sourcemap? --emptyOutDir --clearScreen --watch build|optimize
rollup: build -cw --watch --silent --failAfterWarnings --bundleConfigAsCjs @0
esbuild: build --bundle --minify --sourcemap? --watch --platform=% --target=% --format=% --log-level=% --analyze --outfile=>write --outdir=>write --splitting --tree-shaking=% --jsx=%
tsup: build --dts --watch --minify --clean --sourcemap --format=% --target=%
turbo: read --version
turbo run: build --filter= --concurrency=% --force --no-cache --continue? --dry-run? --summarize --output-logs=% --parallel --affected [\\w:#@./-]+ ...
turbo (?:${TASK}): build --filter= --concurrency=% --force --no-cache --continue? --dry-run? --summarize --output-logs=% --parallel --affected [\\w:#@./-]+ ...
nx: read --version
nx (?:run|run-many|affected|graph|show): build -t:p:% --target=% --targets=% --projects= --skip-nx-cache --parallel? --all --affected --base=% --head=% --verbose --configuration=% [\\w:@./-]+ ...
nx (?:${TASK}): build -t:p:% --target=% --targets=% --projects= --skip-nx-cache --parallel? --all --affected --base=% --head=% --verbose --configuration=% [\\w:@./-]+ ...
next: build -dh build|lint|info|telemetry|typegen
svelte-check: build --tsconfig= --threshold=% --output=% --fail-on-warnings --watch
attw: build --pack --format=%
publint: build
depcheck: build --ignores=% --json
knip: build --production --fix>format --reporter=% --no-exit-code --include=% --exclude=%
madge: build --circular --extensions=% --json
pytest: build ${PYTEST_OPTIONS}
mypy: build ${PY_LINT} -p:m:% --strict --ignore-missing-imports --show-error-codes --no-error-summary --pretty --namespace-packages --explicit-package-bases --follow-imports=% --python-version=% --package=% --module=% --warn-unused-ignores --disallow-untyped-defs --no-incremental --check-untyped-defs --install-types>packages
pyright: build ${PY_LINT} -p: --project= --outputjson --stats --warnings --pythonversion=% --verifytypes=% --level=%
ruff format: format ${PY_LINT} --line-length=% --preview --exclude= --target-version=% --no-cache --force-exclude
ruff: build ${PY_LINT} --select=% --ignore=% --extend-select=% --line-length=% --output-format=% --unsafe-fixes --show-fixes --preview --exclude= --target-version=% --no-cache --watch --exit-zero --force-exclude --statistics --version -V
ruff check: build ${PY_LINT} --select=% --ignore=% --extend-select=% --line-length=% --output-format=% --unsafe-fixes --show-fixes --preview --exclude= --target-version=% --no-cache --watch --exit-zero --force-exclude --statistics
ruff rule: read
ruff version: read
black: format ${PY_LINT} -S -l:t:% --line-length=% --target-version=% --skip-string-normalization --exclude= --include= --preview --fast --safe --workers=%
isort: format ${PY_LINT} -cr --check-only --profile=% --line-length=% --skip= --atomic --recursive
flake8: build ${PY_LINT} --select=% --ignore=% --extend-ignore=% --max-line-length=% --max-complexity=% --exclude= --count --show-source --per-file-ignores=
pylint: build ${PY_LINT} -rsE --errors-only --disable=% --enable=% --score=% --reports=% --output-format=% --fail-under=% --jobs=% --recursive=%
bandit: build ${PY_LINT} -rliq -x: -f:% --recursive --severity-level=% --exclude=
coverage run -m pytest: build ${PYTEST_OPTIONS}
coverage run -m unittest: build -vqfbc -k: --verbose --quiet --failfast --buffer --locals
coverage: read --version
coverage report: build -mi --show-missing --skip-covered --fail-under=%
coverage (?:combine|erase): build @0
tox: build -lqvrp? -e:% --recreate --parallel? --listenvs --skip-missing-interpreters run|list|r|p
nox: build -lqr -s:t:k:p:% --list --sessions=% --reuse-existing-virtualenvs --no-install --tags=%
rustc: build --version --explain=% -V --edition=% --crate-type=% --emit=%
rustfmt: format -lv --check --edition=% --verbose --quiet --files-with-diff
gofmt: format one-dash --l --w --d --s --e
goimports: format one-dash --l --w --d --e --local=%
golangci-lint: read --version
golangci-lint (?:linters|version): read
golangci-lint run: build -v -E:D:% --fix>format --timeout=% --enable=% --disable=% --fast --new --new-from-rev=% --verbose --concurrency=% --tests?
golangci-lint fmt: format -d --diff
staticcheck: build one-dash --checks=% --f=% --tests
javac: build one-dash --d=>write --cp= --classpath= --source=% --target=% --release=% --Xlint --verbose --nowarn --g --version
mvn: build one-dash --q --B --o --U --e --X --V --v --N --T=% --ntp --nsu --am --amd --fae --ff --fn --pl= --P=% --rf=% --DskipTests? --DskipITs? --Dtest= --Dit.test= --Dgroups=% --DfailIfNoTests=% --Dsurefire.failIfNoSpecifiedTests=% --DtrimStackTrace=% --Dspring.profiles.active=% --Dcheckstyle.skip? --Djacoco.skip? --Dmaven.test.failure.ignore=% --Dstyle.color=% --quiet --batch-mode --offline --no-transfer-progress --fail-at-end --fail-fast --threads=% --projects=% --also-make --version clean|validate|compile|test|test-compile|process-classes|package|verify|checkstyle:check|spotless:check|spotless:apply|dependency:tree
gradle: build -qidsw -x:% -p: --project-dir= --quiet --info --debug --stacktrace --warn --offline --continue --parallel --no-daemon --daemon --build-cache --no-build-cache --tests= --rerun-tasks --console=% --exclude-task=% --refresh-dependencies --dry-run -m --warning-mode=% --max-workers=% --version (:?[\\w-]+:)*(build|test|check|assemble|clean|classes|testClasses|jar|tasks|projects|dependencies|compile\\w+|lint\\w*|ktlint\\w*|detekt|spotless\\w+|assemble\\w+|test\\w+Test|\\w*[tT]est)
sbt: build =-batch compile|test|clean|update|scalafmt\\w*|testOnly.*|[\\w]+/test|[\\w]+/compile
phpunit: build --filter= --testsuite=% --group=% --exclude-group=% --colors? --stop-on-failure --stop-on-error --testdox --verbose --debug --no-coverage --list-tests --order-by=% --no-progress
phpstan: read -V --version
phpstan (?:analyse|analyze): build --level=% --no-progress --error-format=% --memory-limit=% -l:% --no-ansi
rspec: build -cbpwd -f:% -e:t: --format=% --color --no-color --fail-fast? --example= --tag=% --only-failures --next-failure --backtrace --profile? --seed=% --order=% --dry-run --warnings
rubocop: build -DlSEP -aAx>format -f:% --format=% --autocorrect>format --autocorrect-all>format --auto-correct>format --only=% --except=% --parallel --display-cop-names --fail-level=% --force-exclusion --lint
shellcheck: build -ax -s:S:e:f:o:i:C:% --shell=% --severity=% --exclude=% --format=% --external-sources --color? --enable=%
hadolint: build --ignore=% --failure-threshold=% --no-color --format=% -f:%
yamllint: build -s -f:% --strict --format=%
markdownlint: build -f>format --fix>format --ignore= --disable=
actionlint: build =-verbose --color --no-color
gcc: build ${C_OPTIONS}
g++: build ${C_OPTIONS}
cc: build ${C_OPTIONS}
c++: build ${C_OPTIONS}
clang: build ${C_OPTIONS}
clang++: build ${C_OPTIONS}
clang-format: format -in --dry-run --Werror --style=% --verbose --assume-filename=%
swiftc: build -v --version
swift: build -v -c:% --configuration=% --filter=% --parallel --verbose build|test|package|describe|show-dependencies
npm: read -sqv --silent --quiet --version
npm test: build ${NPM_OPTIONS} ...
npm t: build ${NPM_OPTIONS} ...
npm run: build ${NPM_OPTIONS} ...
npm run-script: build ${NPM_OPTIONS} ...
npm start: build ${NPM_OPTIONS} ...
npm lint: build ${NPM_OPTIONS} ...
npm ls: read -alg --all --long --json --depth=% --prod --dev --omit=% --parseable --global --workspaces --link
npm list: read -alg --all --long --json --depth=% --prod --dev --omit=% --parseable --global --workspaces --link
npm view: read --json ${PACKAGE_NAME}
npm info: read --json ${PACKAGE_NAME}
npm outdated: read -l --long --json --all --depth=%
npm audit: read --json --omit=% --include=% --audit-level=% --production --no-progress @0>packages
npm explain: read --json
npm why: read --json -r
npm root: read -g
npm prefix: read -g
npm bin: read -g
npm help: read
npm pack: write --dry-run --json --silent @0>packages
yarn: read -s --silent --version -v
yarn ${SCRIPT}: build ${SCRIPT_OPTIONS}
pnpm ${SCRIPT}: build ${SCRIPT_OPTIONS}
yarn workspace [\\w@./-]+ (?:${SCRIPT}): build ${SCRIPT_OPTIONS}
yarn workspace [\\w@./-]+ run: build ${SCRIPT_OPTIONS}
yarn workspaces run: build ${SCRIPT_OPTIONS}
yarn workspaces foreach: build -AWpvtRij:% --all --worktree --parallel --verbose --topological --topological-dev --interlaced --jobs=% --include= --exclude= --from= --since? run|${SCRIPT}
pnpm: read -sr -F: --silent --filter= --recursive --version -v --parallel --stream
bun: read --silent --version -v
bun run [\\w:@-]+: build ${SCRIPT_OPTIONS}
bun run: unknown any
cargo: read -qvV --quiet --verbose --version --list --locked --offline --frozen --color=%
cargo build: build ${CARGO_OPTIONS}
cargo b: build ${CARGO_OPTIONS}
cargo check: build ${CARGO_OPTIONS}
cargo c: build ${CARGO_OPTIONS}
cargo test: build ${CARGO_OPTIONS} ...
cargo t: build ${CARGO_OPTIONS} ...
cargo nextest: build ${CARGO_OPTIONS} ...
cargo bench: build ${CARGO_OPTIONS} ...
cargo clippy: build ${CARGO_OPTIONS} --fix>format --allow-dirty --allow-staged --no-deps -D:W:A:% ...
cargo fmt: format ${CARGO_OPTIONS} --check ...
cargo doc: build ${CARGO_OPTIONS} --no-deps --document-private-items
cargo (?:run|r): unknown any
cargo tree: read -d -e:i:p:F:% --depth=% --invert? --package=% --edges=% --duplicates --no-dedupe --all-features --features=% --workspace --target=% --prefix=% --format=
cargo metadata: read --no-deps --format-version=% --offline --locked --features=% --all-features
cargo version: read -v --verbose
cargo search: read --limit=%
cargo pkgid: read
go: read
go build: build ${GO_OPTIONS}
go vet: build one-dash --v --n --x --json --tags=% --mod=%
go fmt: format one-dash --n --x
go run: unknown any
go generate: format one-dash --v --n --x --run=% --skip=%
go version: read one-dash --m --v
go list: read one-dash --m --json? --f= --deps --test --e --u --versions --find --tags=% --mod=%
go env: read one-dash --json --changed
go doc: read one-dash --all --src --u --c --short --cmd
go mod graph: read
go mod why: read one-dash --m
go mod verify: read
go mod tidy -diff: read one-dash --v --x @0
pip: read -qVv --version --quiet
pip list: read -olvue --outdated --format=% --user --not-required --editable --uptodate --exclude=% --local
pip show: read -fv --files --verbose
pip freeze: read -l --all --local --user --exclude-editable --exclude=%
pip check: read -v
`;
