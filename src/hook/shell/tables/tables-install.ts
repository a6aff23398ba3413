/** Table of installations that fetch exactly what a lock file pins. tables.ts explains the form of a line. */

export const INSTALL_TABLE = `
npm ci: build -sdq --no-audit --no-fund --ignore-scripts --silent --quiet --loglevel=% --omit=% --include=% --prefer-offline --offline --no-progress --legacy-peer-deps --foreground-scripts @0>packages lock=package-lock.json|npm-shrinkwrap.json
npm clean-install: build -sdq --no-audit --no-fund --ignore-scripts --silent --omit=% --include=% --prefer-offline @0>packages lock=package-lock.json|npm-shrinkwrap.json
pnpm install: build -rsDP --frozen-lockfile --prefer-offline --offline --silent --reporter=% --ignore-scripts --prod --dev --no-optional --recursive --loglevel=% @0>packages must=--frozen-lockfile lock=pnpm-lock.yaml
pnpm i: build -rsDP --frozen-lockfile --prefer-offline --offline --silent --ignore-scripts --prod --recursive @0>packages must=--frozen-lockfile lock=pnpm-lock.yaml
yarn install: build -s --immutable --immutable-cache --frozen-lockfile --check-cache --inline-builds --silent --offline --prefer-offline --ignore-scripts --production --non-interactive --mode=% @0>packages must=--immutable|--frozen-lockfile lock=yarn.lock
bun install: build --frozen-lockfile --ignore-scripts --production --silent --no-progress @0>packages must=--frozen-lockfile lock=bun.lock|bun.lockb
bun i: build --frozen-lockfile --ignore-scripts --production --silent @0>packages must=--frozen-lockfile lock=bun.lock|bun.lockb
deno install: build -q --frozen --quiet @0>packages must=--frozen lock=deno.lock
pip install: build -qv -r: --require-hashes --requirement= --no-deps --quiet --no-input --disable-pip-version-check --no-cache-dir --only-binary=% --no-warn-script-location --progress-bar=% @0>packages must=--require-hashes
uv sync: build -qv --frozen --locked --all-extras --all-groups --all-packages --dev --no-dev --extra=% --group=% --no-group=% --only-group=% --only-dev --package=% --no-install-project --no-progress --quiet --offline --inexact --exact @0>packages must=--frozen|--locked lock=uv.lock|pyproject.toml
uv pip sync: build -q --require-hashes --quiet must=--require-hashes
poetry install: build -qnv --no-root --sync --with=% --without=% --only=% --extras=% --all-extras --no-interaction --quiet --no-ansi @0>packages locked=poetry.lock|pyproject.toml
poetry sync: build -qnv --no-root --with=% --without=% --only=% --extras=% --all-extras --no-interaction --quiet --no-ansi @0>packages locked=poetry.lock|pyproject.toml
pdm sync: build -qvd -G:% --dev --prod --no-self --clean --group=% @0>packages locked=pdm.lock|pyproject.toml
pipenv sync: build -dq --dev --quiet @0>packages locked=Pipfile.lock|Pipfile
cargo fetch: build -qv --locked --frozen --offline --quiet --verbose --target=% @0>packages must=--locked|--frozen lock=Cargo.lock
go mod download: build one-dash --x --json @0>packages lock=go.sum|go.mod
go mod vendor: packages
bundle install: build --frozen --deployment --quiet --local --jobs=% --retry=% @0>packages must=--frozen|--deployment lock=Gemfile.lock|Gemfile
bundle check: read --dry-run @0
composer install: build -nqovV --no-interaction --no-dev --dev --no-progress --prefer-dist --optimize-autoloader --no-scripts --no-plugins --no-ansi --ansi --quiet --no-autoloader --classmap-authoritative --apcu-autoloader @0>packages locked=composer.lock|composer.json
dotnet restore: build -v:% --locked-mode --verbosity=% --nologo --no-cache --force [\\w./-]+\\.(cs|fs|vb)proj|[\\w./-]+\\.slnx? must=--locked-mode lock=packages.lock.json
dotnet tool restore: packages
mix deps.get: build --check-locked @0>packages must=--check-locked lock=mix.lock
`;
