/**
 * Table of project runners: each starts a program of the project's own environment. Only build tools that the tables
 * name may follow. tables.ts explains the form of a line.
 */

export const RUNNER_TABLE = `
uv run: build -qvm --frozen --locked --no-sync --offline --quiet --verbose --dev --no-dev --all-extras --all-groups --all-packages --extra=% --group=% --no-group=% --package=% --exact --isolated lock=uv.lock|pyproject.toml
poetry run: build -qnv --quiet --no-interaction --no-ansi
pdm run: build -s --no-sync
pipenv run: build
rye run: build
bundle exec: build
`;
