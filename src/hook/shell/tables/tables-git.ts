/** Table of the git commands that need no approval. tables.ts explains the form of a line. */

const DIFF_OPTIONS =
  "-pabBCDMRuwWz -G:S: -U:l:% --stat? --numstat --shortstat --name-only --name-status --color? --no-color --word-diff? --word-diff-regex= --patch --no-patch --summary --cached --staged --unified=% --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-blank-lines --diff-filter=% --find-renames? --find-copies? --no-renames --no-ext-diff --no-textconv --minimal --patience --histogram --diff-algorithm=% --exit-code --quiet --merge-base --function-context --raw --check --compact-summary --dirstat? --relative? --no-prefix --text --binary --full-index --abbrev? --no-index --submodule? --ignore-submodules? --color-moved? --inter-hunk-context=%";
const LOG_OPTIONS = `${DIFF_OPTIONS} # -gisEFP -n:L: --oneline --graph --all --format= --pretty? --decorate? --no-decorate --abbrev-commit --no-abbrev-commit --date=% --date-order --topo-order --author-date-order --reverse --follow --since= --until= --after= --before= --author= --committer= --grep= --all-match --invert-grep --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --merges --no-merges --first-parent --branches? --tags? --remotes? --max-count=% --skip=% --cherry-pick --left-right --left-only --right-only --ancestry-path? --show-signature --source --no-walk? --children --parents --boundary --simplify-by-decoration --full-history --walk-reflogs --not --notes? --no-notes --no-color --cc -c -m --encoding=%`;

export const GIT_TABLE = `
git: read -hvP --no-pager --version --help --no-optional-locks --literal-pathspecs --no-replace-objects
git status: read -sbvzu? --short --branch --porcelain? --long --verbose --untracked-files? --ignored? --ignore-submodules? --show-stash --ahead-behind --no-ahead-behind --renames --no-renames --column? --no-column
git log: read ${LOG_OPTIONS}
git diff: read ${DIFF_OPTIONS}
git show: read ${LOG_OPTIONS}
git whatchanged: read ${LOG_OPTIONS}
git shortlog: read -nsec -w? --numbered --summary --email --all --since= --until= --no-merges --merges --group=%
git blame: read -bcefhlnpstwC? -M? -L: --porcelain --line-porcelain --show-email --show-name --show-number --date=% --ignore-rev= --since= --reverse --first-parent --root
git annotate: read -L:
git ls-files: read -cdmoiskutvz -x: --cached --deleted --modified --others --ignored --stage --unmerged --killed --exclude-standard --exclude= --directory --no-empty-directory --error-unmatch --full-name --abbrev? --deduplicate --eol --recurse-submodules
git ls-tree: read -drltz --name-only --name-status --long --full-name --full-tree --abbrev? --object-only --format=
git rev-parse: read -q --abbrev-ref? --short? --show-toplevel --git-dir --git-common-dir --absolute-git-dir --verify --quiet --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --show-prefix --show-cdup --symbolic --symbolic-full-name --all --branches? --tags? --remotes? --sq --not --show-superproject-working-tree --path-format=% --show-object-format?
git rev-list: read # -n: --count --all --max-count=% --skip=% --since= --until= --before= --after= --author= --grep= --no-merges --merges --first-parent --reverse --left-right --objects --branches? --tags? --oneline --abbrev-commit --not
git describe: read --tags --all --always --dirty? --long --abbrev? --match= --exclude= --exact-match --first-parent --contains --candidates=%
git grep: read # -acEFGhHiIlLnopPqrvwWz -e:A:B:C:m: --untracked --no-index --cached --ignore-case --line-number --name-only --files-with-matches --files-without-match --count --word-regexp --fixed-strings --extended-regexp --perl-regexp --and --or --not --all-match --color? --no-color --break --heading --show-function --function-context --only-matching --max-depth=% --column --quiet --invert-match --recurse-submodules --context=% --after-context=% --before-context=% --max-count=% --exclude-standard --no-exclude-standard --full-name
git cat-file: read -epst @2
git for-each-ref: read -spt --format= --sort=% --count=% --contains? --no-contains? --merged? --no-merged? --points-at=% --ignore-case --shell
git show-ref: read -qdhs --heads --tags --head --verify --quiet --hash? --abbrev? --branches
git reflog: read ${LOG_OPTIONS} (?!(?:expire|delete|drop|write)$).*
git version: read --build-options
git help: read -agc
git name-rev: read --tags --all --name-only --always --refs=
git merge-base: read -a --all --is-ancestor --octopus --independent --fork-point
git check-ignore: read -qvnz --verbose --quiet --non-matching --no-index
git check-attr: read -az --all --cached
git count-objects: read -vH --verbose --human-readable
git var: read GIT_AUTHOR_IDENT|GIT_COMMITTER_IDENT|GIT_DEFAULT_BRANCH
git cherry: read -v --abbrev?
git range-diff: read --creation-factor=% --no-dual-color --left-only --right-only --color? --no-color
git diff-tree: read ${DIFF_OPTIONS} -rtsvmc --root --no-commit-id --stdin --cc --pretty? --always
git diff-index: read ${DIFF_OPTIONS} -m
git stash list: read ${LOG_OPTIONS}
git stash show: read ${DIFF_OPTIONS} --include-untracked --only-untracked
git worktree list: read -vz --porcelain --verbose
git remote: read -v --verbose @0>network
git branch: vcs -acdilqrtv -u: -M>destructive -m --list --all --remotes --show-current --contains? --no-contains? --merged? --no-merged? --sort=% --format= --column? --no-column --color? --no-color --verbose --move --copy --track? --no-track --set-upstream-to= --unset-upstream --quiet --points-at=% --ignore-case --abbrev? --delete>destructive -D>destructive -f>destructive --force>destructive
git add: vcs -AuvnN --all --update --verbose --dry-run --intent-to-add --no-all --ignore-errors --refresh --renormalize --chmod=% --sparse -f --force
git commit: vcs -aqsvnz -m: -S? --all --message= --amend --no-edit --quiet --signoff --verbose --no-verify --allow-empty --allow-empty-message --author= --date= --dry-run --short --porcelain --no-gpg-sign --fixup=% --squash=% --only --include -o -i --no-post-rewrite --trailer= --no-signoff --reset-author --cleanup=% --untracked-files?
git checkout: vcs -qtd -b: -B:>destructive --quiet --track? --no-track --detach --orphan= --ours --theirs --progress --no-progress --guess --no-guess --merge
git switch: vcs -qdtm -c: --create= --quiet --detach --track? --no-track --orphan= --merge --guess --no-guess --progress --no-progress
git restore: vcs -SWqp -s: --staged --worktree --source= --quiet --ours --theirs --merge --overlay --no-overlay
git merge: vcs -nqv -m:X: --no-ff --ff --ff-only --squash --no-squash --no-commit --commit --no-edit --abort --continue --quit --quiet --verbose --stat --no-stat --message= --strategy-option=% --allow-unrelated-histories --autostash --no-autostash --no-verify --signoff --log?
git rebase: vcs -qvnkm -X: --abort --continue --skip --quit --onto= --quiet --verbose --autostash --no-autostash --autosquash --no-autosquash --keep-base --no-ff --force-rebase --strategy-option=% --root --committer-date-is-author-date --stat --no-stat --no-verify --update-refs --merge --fork-point --no-fork-point --show-current-patch
git tag: vcs -alsn? -m: -d --list? --annotate --message= --delete --contains? --no-contains? --merged? --no-merged? --sort=% --format= --points-at=% --sign --column? --ignore-case --color? --verify -v
git cherry-pick: vcs -nxsX: -m:% --no-commit --abort --continue --skip --quit --signoff --mainline=% --allow-empty --keep-redundant-commits --ff
git revert: vcs -ns -m:% --no-edit --no-commit --abort --continue --skip --quit --mainline=% --signoff
git init: vcs -q -b:% --quiet --initial-branch=% --bare --object-format=%
git mv: vcs -fknv --force --dry-run --verbose
git fetch: vcs -apqvtnk -f>destructive --all --prune --prune-tags --tags --no-tags --quiet --verbose --dry-run --progress --no-progress --depth=% --unshallow --deepen=% --no-recurse-submodules --porcelain (?!\\.)[\\w.-]+(?:/(?!\\.)[\\w.-]+)*
git stash: vcs -uakqSp -m: --include-untracked --all --keep-index --no-keep-index --quiet --staged --message= --patch @0
git stash push: vcs -uakqSp -m: --include-untracked --all --keep-index --no-keep-index --quiet --staged --message= --patch
git stash save: vcs -uakq --include-untracked --all --keep-index --quiet
git stash pop: vcs -q --index --quiet @1 stash@\\{\\d+\\}|\\d+
git stash apply: vcs -q --index --quiet @1 stash@\\{\\d+\\}|\\d+
git worktree: vcs -fdlq -b: -B:>destructive --detach --checkout --no-checkout --lock --orphan --quiet --track --no-track (?!remove$).*
git bisect: vcs --first-parent --no-checkout --term-new=% --term-old=% (?!(?:visualize|view|replay)$).*
git notes: vcs -f -m: --message= --ref=% (?!(?:edit|merge|prune|remove)$).*
`;
