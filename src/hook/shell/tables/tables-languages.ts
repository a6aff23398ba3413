/** Table of compilers, formatters and test tools of single languages. tables.ts explains the form of a line. */

const DENO =
  "-q --quiet --no-check? --check? --frozen? --watch --fail-fast? --filter= --coverage? --parallel --reporter=% --no-lock --cached-only";
const UV_TREE =
  "-qv --frozen --locked --no-dev --depth=% --invert --no-dedupe --outdated --package=% --universal";
const DOTNET =
  "-v:% -c:% -f:% -r:% --verbosity=% --configuration=% --framework=% --runtime=% --no-restore --no-build --nologo --filter= --logger=% --verify-no-changes --list-tests --blame --collect= --no-incremental --tl? --include= --exclude= --severity=% --diagnostics=% --no-dependencies --interactive? --arch=% --os=%";
const DOTNET_PROJECT = "[\\w./-]+\\.(cs|fs|vb)proj|[\\w./-]+\\.slnx?|[\\w.-][\\w./-]*";
const TEST_NAMES =
  "(?:\\w+:)*(?:test|spec|lint|rubocop|standard|stats|routes|notes|about|check|build|compile|features)(?::\\w+)*|-[TPAD]|TEST=\\w[\\w./*-]*";

export const LANGUAGE_TABLE = `
deno: read -qV --version --quiet
deno test: build ${DENO} (?!\\w[\\w+.-]+:).*
deno check: build ${DENO} (?!\\w[\\w+.-]+:).*
deno lint: build -q --quiet --json --compact --rules --fix>format (?!\\w[\\w+.-]+:).*
deno fmt: format -q --quiet --check --ext=% --line-width=% --indent-width=% --no-semicolons --single-quote (?!\\w[\\w+.-]+:).*
deno info: read --json (?!\\w[\\w+.-]+:).*
ts-prune: build
rome (?:check|format|ci): build
standard: build --fix>format
xo: build --fix>format
c8: build --reporter=% --all --check-coverage --lines=% @0
nyc: build --reporter=% --all @0
storybook: build --quiet build
astro: build check|build|sync
nuxt: build build|prepare|typecheck|generate
nuxi: build build|prepare|typecheck
vue-cli-service: build build|lint
ng: build --configuration=% --watch? --browsers=% --code-coverage --no-watch --no-progress build|test|lint|version
lerna: read --version
lerna (?:list|ls|changed|diff): read -al --all --long --json --since=%
lerna run: build --scope=% --stream --since=% --concurrency=% [\\w:-]+ ...
size-limit: build --json
changeset: build --verbose status
dprint: format check|fmt
uv: read -Vq --version --quiet
uv pip list: read -q --outdated --format=% --quiet
uv pip show: read -q --files --quiet
uv pip freeze: read -q --quiet
uv pip check: read -q --quiet
uv pip tree: read -q --depth=% --quiet
uv tree: read ${UV_TREE}
uv lock: build -q --check --locked --offline --quiet must=--check|--locked @0
uv version: read --short --output-format=% @0
uv python list: read --only-installed --all-versions
uv python find: read
uv build: build -q --wheel --sdist --quiet @0
poetry: read -qV --version
poetry show: read -tloT --tree --latest --outdated --only=% --with=% --without=% --no-ansi
poetry check: read --lock --strict @0
poetry env info: read -p --path @0
poetry env list: read --full-path @0
poetry version: read -s --short @0
poetry build: build -f:% --format=% @0
pdm list: read --graph --tree
pipenv graph: read --json --bare
hatch test: build -acpqv --all --cover --parallel --quiet --randomize --python=% --show
hatch fmt: format --check -l --linter -f --formatter
hatch version: read @0
hatch build: build -t:% --target=%
pdm: read -V --version
pipenv: read --version
hatch: read --version
pre-commit: read -V --version
pre-commit run: build -av --all-files --verbose --show-diff-on-failure --color=% --hook-stage=% [\\w-]+
pydocstyle: build --convention=% --count
vulture: build --min-confidence=%
ty: build check|version|[\\w./-]+
pyre: build check
nosetests: build -vsx
stestr: build run|last|list
sphinx-build: build -bW:% -n -q -E -a
mkdocs: build -qsv --strict --quiet --clean build
go tool cover: build one-dash --func= --html=>unknown
go mod tidy: packages
go work sync: packages
go test: build one-dash --v --race --run= --count=% --timeout=% --short --cover --covermode=% --coverpkg= --tags=% --bench= --benchmem --benchtime=% --json --parallel=% --cpu=% --failfast --list= --mod=% --trimpath --n --x --a --p=% --o=>write --coverprofile=>write --msan --asan --skip= --shuffle=% --fuzz= --fuzztime=% --cpuprofile=>write --memprofile=>write --vet=%
gotestsum: build --format=% --junitfile=>write @0 ...
revive: build one-dash --formatter=%
errcheck: build
govulncheck: build one-dash --show=% --test
gofumpt: build one-dash --l --w --d --extra
cargo-nextest: build
cargo machete: build
cargo udeps: build --workspace --all-targets
cargo deny: build check|advisories|bans|licenses|sources|list
cargo audit: build -q --deny=% @0
cargo hack: build --feature-powerset --each-feature --workspace --no-dev-deps check|test|build|clippy
cargo expand: build --lib --bin=% -p:%
cargo llvm-cov: build --workspace --html --lcov --summary-only --all-features
cargo insta: build --workspace test
cargo outdated: read -wR --workspace --root-deps-only --depth=%
rustup: read --version
rustup show: read active-toolchain|home
rustup target list: read --installed
rustup toolchain list: read -v
rustup component list: read --installed
clang-tidy: build -p: --quiet --fix>format --checks= --header-filter= --warnings-as-errors= --list-checks
cppcheck: build -qj:% --enable=% --std=% --quiet --inline-suppr --error-exitcode=% --suppress=% --force --verbose --template=%
cpplint: build --filter=% --recursive --quiet
include-what-you-use: unknown
bear: unknown
ccache: read -sV --show-stats --version
cmake-format: build -i>format --check
nm: read -aCDgu --demangle --dynamic --defined-only --undefined-only
objdump: read -dxhtTCSs --disassemble --syms --demangle
readelf: read -ahlSsdnrVW --all --headers --sections --symbols --dynamic --wide
ldd: unknown
size: read -At --format=%
valgrind: unknown
pkg-config: read --cflags --libs --modversion --exists --list-all --version
java: read one-dash --version @0
javap: read one-dash --c --p --v --s --cp= --classpath=
jar: read -tvf: --list --file=
jar (?:tv?f|tfv|vtf): read
jdeps: read one-dash --s --summary
kotlinc: build one-dash --version --d=>write --cp= --classpath= --include-runtime --nowarn
ktlint: build -F>format --format>format --color --relative --reporter=%
detekt: build -i: --input= --parallel --build-upon-default-config --auto-correct>format
google-java-format: format -in --replace --dry-run --set-exit-if-changed
dotnet: read -h --version --info --list-sdks --list-runtimes
dotnet build: build ${DOTNET} ${DOTNET_PROJECT}
dotnet test: build ${DOTNET} ${DOTNET_PROJECT}
dotnet format: format ${DOTNET} whitespace|style|analyzers|${DOTNET_PROJECT}
dotnet clean: build ${DOTNET} ${DOTNET_PROJECT}
dotnet list: read --outdated --vulnerable --deprecated --include-transitive --format=% package|reference|${DOTNET_PROJECT}
dotnet sln list: read @0
csharpier: read --version
csharpier check: build
csharpier format: format
ruby: read -v --version @0
rake: build -qstv --silent --trace --quiet --tasks --dry-run ${TEST_NAMES}
rails: build -bv --verbose --defer-output --fail-fast --seed=% --name= test(?::\\w+)?|routes|stats|notes|about|version|zeitwerk:check|[\\w./-]+_test\\.rb(?::\\d+)*|test/[\\w./-]*
minitest: build
standardrb: build --fix>format --parallel
erb_lint: build --lint-all --autocorrect>format
erblint: build --lint-all --autocorrect>format
reek: build
brakeman: build -qz --no-pager --quiet --no-progress
sorbet: build
srb: build tc|--version
steep: build check
bundle: read -v --version
bundle list: read --name-only --paths
bundle show: read --paths
bundle info: read --path
bundle outdated: read --strict --only-explicit --parseable
gem list: read -l --local --exact
gem which: read
php: read -lvm --version must=-l|-v|-m|--version
composer: read -V --version --no-interaction --no-ansi
composer validate: read --strict --no-check-all --no-check-lock --no-check-publish --with-dependencies @0
composer show: read -itloDN --installed --tree --latest --outdated --direct --name-only --format=%
composer outdated: read -Dmp --direct --minor-only --format=%
composer why: read -rt --recursive --tree
composer diagnose: unknown
composer check-platform-reqs: read --no-dev --lock
composer dump-autoload: build -oa --optimize --classmap-authoritative --no-dev
composer test: build @0
composer lint: build @0
composer run(?:-script)? (?:test|lint|check|format|fix|analyse|analyze|stan|cs|build)(?::[\\w:-]+)?: build --no-interaction --timeout=% @0
psalm: build --no-cache --show-info=% --no-progress --threads=% --output-format=% --stats
pest: build -v --filter= --group=% --parallel --coverage --bail --compact --colors? --testsuite=% --exclude-group=%
paratest: build -p:% --processes=% --testsuite=% --filter=
pint: format --test --dirty -v --bail
rector: read --version
rector process: format --dry-run --no-progress-bar --clear-cache
phpcs: build -spn --standard=% --report=% --colors --extensions=%
phpcbf: format -pn --standard=% --extensions=%
php-cs-fixer: read -V --version
php-cs-fixer (?:fix|check): format --dry-run --diff --verbose -v --using-cache=% --no-interaction --format=%
mix: unknown
openssl: network
openssl version: read -a @0
openssl x509: read one-dash --in= --noout --text --dates --startdate --enddate --subject --issuer --serial --fingerprint --sha256 --ext=% @0
mix test: build --trace --failed --cover --stale --seed=% --only=% --exclude=% --max-failures=%
mix format: format --check-formatted --dry-run
mix compile: build --warnings-as-errors --force
mix credo: build --strict
just: build -ln --list --dry-run --summary @0
task: build -l --list -a --list-all @0
mise: read --version
swiftlint: build --fix>format --quiet --strict lint
swift-format: build -i>format -r --in-place>format --recursive lint|format|[\\w./-]+
swift: build -v:c:% --configuration=% --filter= --parallel --verbose --skip-build build|test|package|describe|show-dependencies
zig: read
zig version: read @0
zig (?:test|build): build -O:% (?!run$)[\\w./-]+
zig fmt: format --check
stack: build --fast --test --pedantic build|test
cabal: build -v:% build|test|check
ghc: read --version @0
elm-test: build
elm-format: format --validate --yes
terraform-docs: read markdown|json|table|[\\w./-]+
tflint: build --recursive --format=%
taplo: format check|fmt|lint|format|[\\w./-]+
markdownlint-cli2: build --fix>format
cspell: build --no-progress --quiet --gitignore lint|[\\w./*{}-]+
codespell: build -q -w>format -S:L:% --skip=%
typos: build -w>format --write-changes>format --format=%
shfmt: format -lwdsp -i:% --list --write --diff --simplify --indent=%
sqlfluff: read --version
sqlfluff lint: build --dialect=%
sqlfluff (?:fix|format): format --dialect=%
buf: build lint|breaking|build|format|-d|--diff
protoc: unknown
helm lint: build --strict --quiet
lsof: read -nPtUl -i? -a -p:u:c:% @3
`;
