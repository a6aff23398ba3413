/**
 * Table of programs that need no approval: the class of each program, and every option that keeps the class.
 *
 *   name or name with subcommand: class, then words in any order:
 *     -abc   letters without a value           --name    the same, long
 *     -ab:   letters with a value              --name=   long, with a value in this word or the next
 *     -a?    a value only in the same word     --name?   the same, long
 *     %      after these: the value is a plain word and not a path
 *     >class after an option: the command gets this class
 *     #      numbers as options (-5)           any       every word is allowed
 *     @2     maximum number of plain words; @1>write: a further one makes it a write
 *     a|b    the known plain words             one-dash  options are words after one dash
 *     ...    words after -- go to a script     =-x       this word unchanged
 *     must=--a|--b   one of these options is there, or else the program installs something new
 *     lock=a|b       lock files of an installation, which the run must not have changed
 *     locked=a|b     the same, and the first one must exist
 *
 * A subcommand can be a pattern with `*`. The row with the most words applies.
 *
 * An option is listed if the program's own help gives it exactly this value, and if it runs, reads or writes no other
 * file that the class does not cover.
 */
import { type ProgramRow, programRow } from "../options.ts";
import { BUILD_TABLE } from "./tables-build.ts";
import { CLOUD_TABLE } from "./tables-cloud.ts";
import { GIT_TABLE } from "./tables-git.ts";
import { INSTALL_TABLE } from "./tables-install.ts";
import { LANGUAGE_TABLE } from "./tables-languages.ts";
import { RUNNER_TABLE } from "./tables-runners.ts";

const READ_TABLE = `
ls: read -aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I:T:w: --color? --all --almost-all --human-readable --sort=% --time=% --time-style=% --group-directories-first --recursive --reverse --full-time --ignore= --directory --inode --size --si --classify? --file-type --no-group --dereference --quoting-style=%
cat: read -AbeEnstTuv --number --show-all --show-ends --show-tabs --number-nonblank --squeeze-blank --show-nonprinting
head: read # -n:c: -qvz --lines=% --bytes=% --quiet --verbose
tail: read # -n:c:s: -fFqvr --lines=% --bytes=% --follow? --quiet --retry
less: read -NRSFXiIMKEesn (?!\\+).*
more: read -dflpcsu (?!\\+).*
grep: read # -abcEFGhHiIlLnoPqrRsTuUvwxyzZ -e:f:m:A:B:C:d:D: --color? --colour? --include= --exclude= --exclude-dir= --regexp= --file= --max-count=% --after-context=% --before-context=% --context=% --ignore-case --line-number --recursive --files-with-matches --files-without-match --count --only-matching --word-regexp --line-regexp --invert-match --extended-regexp --fixed-strings --perl-regexp --basic-regexp --no-filename --with-filename --quiet --silent --no-messages --text --null --binary-files=% --dereference-recursive --byte-offset --label= --line-buffered --initial-tab --no-ignore-case --directories=% --devices=%
rg: read # -acFHiIlLnNoPpqsSuUvwxz. -e:f:m:A:B:C:g:t:T:r:d:j:M:E: --color=% --colors=% --regexp= --glob= --iglob= --type=% --type-not=% --files --files-with-matches --files-without-match --count --count-matches --hidden --no-ignore --no-ignore-vcs --no-ignore-parent --unrestricted --follow --max-depth=% --max-count=% --max-columns=% --max-filesize=% --after-context=% --before-context=% --context=% --ignore-case --smart-case --case-sensitive --line-number --no-line-number --fixed-strings --word-regexp --line-regexp --invert-match --only-matching --multiline --multiline-dotall --pcre2 --heading --no-heading --with-filename --no-filename --json --stats --sort=% --sortr=% --text --binary --column --trim --vimgrep --null --quiet --replace= --type-list --no-messages --no-config --debug --one-file-system --pretty --passthru --context-separator= --max-columns-preview --encoding=%
ag: read # -acDfFgGhHiklLmnoQqRrsStuUvVwzW0 -A?B?C? --hidden --nocolor --color --nogroup --column --ignore= --ignore-case --literal --depth=% --files-with-matches --count --word-regexp
ack: read # -acfFhHilLnoqQrRsvwx -A:B:C:m: --color --nocolor --ignore-case --type=% --files-with-matches --word-regexp --literal
wc: read -cmlLw --lines --words --bytes --chars --max-line-length --total=%
sort: read -bcCdfghiMmnrRsuVz -k:t: -S:% -o:>write --output=>write --key=% --field-separator= --numeric-sort --reverse --unique --human-numeric-sort --version-sort --ignore-case --stable --check? --general-numeric-sort --dictionary-order --zero-terminated --random-sort --merge --parallel=% --debug
uniq: read -cdDiuz -f:s:w:% --count --repeated --unique --ignore-case --all-repeated? --group? --skip-fields=% --skip-chars=% --check-chars=% --zero-terminated @1>write
cut: read -nsz -b:c:d:f: --delimiter= --fields=% --characters=% --bytes=% --only-delimited --complement --output-delimiter=
tr: read -cCdst --delete --squeeze-repeats --complement --truncate-set1
diff: read # -abBdeEiNnpqrstTuwyZ -C:U:W:I:x:L: --unified? --context? --brief --recursive --ignore-all-space --ignore-space-change --ignore-blank-lines --ignore-case --side-by-side --width=% --color? --exclude= --new-file --report-identical-files --suppress-common-lines --strip-trailing-cr --label= --text --minimal --no-dereference --ignore-matching-lines= --show-c-function --left-column
cmp: read -bls -i:n:% --print-bytes --silent --quiet --verbose --bytes=% --ignore-initial=% @4
comm: read -123z --output-delimiter= --check-order --nocheck-order --total
file: read -bhiLkNprsz0 --brief --mime --mime-type --mime-encoding --dereference --no-dereference --extension
stat: read -fLtxnqrs -c: --format= --printf= --file-system --dereference --terse
du: read -abcDhHkLlmPsSx0 -d:t:B:% --max-depth=% --human-readable --summarize --all --apparent-size --total --exclude= --one-file-system --bytes --block-size=% --threshold=% --si --time? --inodes --separate-dirs
df: read -ahHiklmPTx -t:B:% --human-readable --type=% --print-type --total --inodes --local --output? --si
pwd: read -LP
echo: read any
true: read any
false: read any
:: read any
test: read any
[: read any
[[: read any
printf: read @99
expr: read any
seq: read -w -f:s: --equal-width --separator= --format=
which: read -as --all
whereis: read -bms
type: read -afptP
date: read -uRI -d:r: --date= --utc --universal --iso-8601? --rfc-3339=% --rfc-email --reference=
whoami: read @0
id: read -aGgnruzZ --user --group --groups --name --real
groups: read @1
uname: read -amnoprsv --all --kernel-name --machine --operating-system --kernel-release
hostname: read -fisdAI --fqdn --short @0
arch: read @0
tty: read -s @0
ps: read -ALadefFHjlmTwxMZ -o:O:p:C:u:U:t:g:G:s: --sort=% --forest --no-headers --pid=% --ppid=% --user=% --format=% --width=% [aufxwljvTc0-9]+
pgrep: read -aflnovxcw -u:U:P:t:g:d: @1
tree: read -adDfFghilnNpsSuvxACr -L:I:P: --prune --dirsfirst --filelimit=% --noreport --gitignore --charset=% --du --sort=% --matchdirs --ignore-case
realpath: read -eLmPqsz --relative-to= --relative-base= --canonicalize-existing --canonicalize-missing --no-symlinks
readlink: read -efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline
basename: read -az -s: --suffix= --multiple
dirname: read -z
sleep: read @9
cd: read -LPe@
pushd: read
popd: unknown
unset: read -fvn
export: read -n
local: read
readonly: read
return: read any
read: read -rse -d:n:N:p:t: [A-Za-z_]\\w*
exit: read any
break: read any
continue: read any
shift: read @1
umask: read -Sp @0
wait: read
jobs: read -lprs
set: read -euxvh -o:% \\+[eux]+|pipefail|errexit|nounset|xtrace
jq: read -acCejMnrRsS0 --arg= --argjson= --raw-output --raw-output0 --raw-input --compact-output --exit-status --null-input --slurp --sort-keys --tab --indent=% --color-output --monochrome-output --ascii-output --join-output --args --jsonargs --seq --stream
yq: read -CejMnNPr -o:p:I:% --output-format=% --input-format=% --no-colors --colors --prettyPrint --exit-status --null-input --unwrapScalar? --indent=% --tojson --no-doc -i>write --inplace>write
column: read -texLn -c:s:o:N:R:H: --table --separator= --output-separator= --json --table-columns= --table-name=
nl: read -p -b:d:f:h:i:l:n:s:v:w: --body-numbering=% --number-width=%
tac: read -br -s: --separator= --before --regex
rev: read
fold: read -bs -w:% --width=% --spaces
fmt: read -cstu -w:p:% --width=% --uniform-spacing --split-only
paste: read -sz -d: --delimiters= --serial
join: read -iz -a:e:j:o:t:v:1:2: --header --check-order --nocheck-order --ignore-case
expand: read -i -t:% --tabs=% --initial
unexpand: read -a -t:% --tabs=% --all
md5sum: read -bctwz --check --quiet --status --tag
sha1sum: read -bctwz --check --quiet --status --tag
sha256sum: read -bctwz --check --quiet --status --tag
sha512sum: read -bctwz --check --quiet --status --tag
shasum: read -bctUp0 -a:% --algorithm=% --check --binary
b2sum: read -bctwz -l:% --check
cksum: read -a:% --algorithm=%
md5: read -qr -s:
sum: read -rs
base64: read -diD -w:% --decode --wrap=% --ignore-garbage @1
xxd: read -abCeEirpuv -c:g:l:o:s:n: @1>write
hexdump: read -bcCdovx -e:n:s:
od: read -abcdfhiloxv -A:j:N:t:w:% --format=% --address-radix=% --read-bytes=% --skip-bytes=%
strings: read # -afow -n:t:e:% --bytes=% --radix=% --all
man: read -kfw [\\w.+-]+
help: read -dms
cal: read -1359jmsywS @3
bc: read -lqsw --mathlib --quiet
tput: read cols|lines|colors|sgr0|bold|setaf|[0-9]+
clear: read @0
locale: read -akm
getconf: read -a @2
nproc: read --all --ignore=% @0
free: read -bghklmtw -s:c:% --human --mega --giga @0
uptime: read -ps --pretty --since @0
lsb_release: read -acdirs --all --short @0
lscpu: read -aJpx @0
lsof: read -nPtUl -a -i:p:u:c: @3
vmstat: read -asSwdt -n @2
tokei: read -fCs -e:t:o:s:% --files --sort=% --exclude= --type=% --output=%
cloc: read --by-file --quiet --json --csv --md --vcs=% --git --exclude-dir= --include-lang= --exclude-lang= --sum-one
fd: read -HIsiFLap0lguq1 -t:e:E:d:S:j:c: --hidden --no-ignore --type=% --extension=% --exclude= --max-depth=% --min-depth=% --exact-depth=% --full-path --glob --follow --absolute-path --color=% --case-sensitive --ignore-case --changed-within=% --changed-before=% --size=% --max-results=% --print0 --list-details --fixed-strings
bat: read -nApPuf -l:r:H: --plain --number --style=% --color=% --language=% --line-range=% --theme=% --decorations=% --show-all
sed: read -nErsuz -e: -i?>write --in-place?>write --expression= --quiet --silent --regexp-extended --separate --unbuffered --null-data --posix --debug
awk: read -F:v: --field-separator= --assign= --re-interval --posix
gawk: read -F:v: --field-separator= --assign= --re-interval --posix --sandbox
mawk: read -F:v:
nawk: read -F:v:
find: read one-dash --name= --iname= --path= --ipath= --wholename= --regex= --iregex= --regextype=% --type=% --xtype=% --maxdepth=% --mindepth=% --newer= --anewer= --cnewer= --newermt= --mtime=% --mmin=% --atime=% --amin=% --ctime=% --cmin=% --size=% --empty --perm= --user=% --group=% --uid=% --gid=% --nouser --nogroup --readable --writable --executable --links=% --inum=% --samefile= --lname= --ilname= --print --print0 --printf= --ls --prune --quit --depth --d --mount --xdev --not --a --and --o --or --true --false --follow --H --L --P --daystart --warn --nowarn --noleaf --delete>destructive --fprint=>write --fprint0=>write --fls=>write
mkdir: write -pv -m:% --parents --mode=% --verbose
touch: write -acmhf -d:t:r: --date= --reference= --no-create --time=%
cp: write -abdfiHlLnpPrRsTuvxXc -t:S: --archive --recursive --force --interactive --no-clobber --preserve? --parents --verbose --update? --dereference --no-dereference --no-target-directory --target-directory= --backup? --suffix=% --reflink? --sparse=% --symbolic-link --link --attributes-only
mv: write -bfinTuv -t:S: --force --interactive --no-clobber --verbose --update? --no-target-directory --target-directory= --backup? --suffix=%
ln: write -bfhiLnPrsTv -t:S: --symbolic --force --no-dereference --relative --verbose --no-target-directory --target-directory=
tee: write -aip --append --ignore-interrupts
install: write -bcCdDpTv -m:t:g:o: --mode=% --directory --target-directory= --compare
tar: write -cvzjJpPhtark -f:C:X: --create --gzip --bzip2 --xz --zstd --auto-compress --file= --directory= --exclude= --exclude-vcs --exclude-from= --verbose --list --dereference --sort=% --owner=% --group=% --numeric-owner --mtime= --transform= --strip-components=% --format=% --no-recursion --totals
zip: write # -rqvjuyDXo -x:i: --recurse-paths --quiet
gzip: write # -cdfhklnNqrStv -S:% --keep --stdout --decompress --force --list --test --verbose --best --fast --to-stdout
gunzip: write -cfklnNqrtv -S:% --keep --stdout --force --list --test
bzip2: write # -cdfkqstvz --keep --stdout --decompress --force --test
bunzip2: write -cfkqstv --keep --stdout --force
xz: write # -cdefklqQtvz -T:% --keep --stdout --decompress --force --list --test --threads=%
zstd: write # -cdfklqrtvz -T:% --keep --stdout --decompress --force --test --threads=%
zcat: read
gzcat: read
chmod: write -cfRvhH --recursive --verbose --changes --quiet --reference=
split: write # -deuvx -a:b:C:l:n:t: --lines=% --bytes=% --number=% --numeric-suffixes? --suffix-length=% --additional-suffix=% --line-bytes=% @2
csplit: write -ksz -b:f:n: --prefix= --digits=% --keep-files
mktemp: write -dqtu -p: --directory --tmpdir? --suffix=%
`;

/** Programs that run another program: only their own options, up to its name. */
const WRAPPER_TABLE = `
env: read -i0v -u: -C: --ignore-environment --unset=% --chdir=
command: read -pvV
builtin: read
exec: read -cl -a:%
nohup: read
time: read -p
setsid: read -fw --fork --wait
nice: read # -n:% --adjustment=%
ionice: read -t -c:n:% --class=% --classdata=%
stdbuf: read -i:o:e:% --input=% --output=% --error=%
caffeinate: read -dimsu -t:w:%
timeout: read -fpv -k:s:% --signal=% --kill-after=% --preserve-status --foreground --verbose
xargs: read -0rtx -n:P:I:d:L:s:E: --null --no-run-if-empty --verbose --max-args=% --max-procs=% --replace= --delimiter= --max-lines=% --max-chars=% --exit
sudo: read -ns -u:g:% --user=%
doas: read -n -u:%
`;

const rowsOf = (table: string): Map<string, string> =>
  new Map(
    table
      .trim()
      .split("\n")
      .map((line) => {
        const end = line.indexOf(": ");
        return [line.slice(0, end), line.slice(end + 2)];
      }),
  );

const TABLES = [READ_TABLE, GIT_TABLE, BUILD_TABLE, LANGUAGE_TABLE, INSTALL_TABLE, CLOUD_TABLE];
const LINES = new Map(TABLES.flatMap((table) => [...rowsOf(table)]));
const WRAPPER_LINES = new Map([...rowsOf(WRAPPER_TABLE), ...rowsOf(RUNNER_TABLE)]);
const READ_ROWS = new Map<string, ProgramRow>();

const SAME_ROW: Readonly<Record<string, string>> = {
  egrep: "grep",
  fgrep: "grep",
  gradlew: "gradle",
  mvnw: "mvn",
};

/** The row of a program. Undefined for an unknown program. */
export const knownProgram = (name: string): ProgramRow | undefined => rowAt(LINES, name);
export const knownWrapper = (name: string): ProgramRow | undefined => rowAt(WRAPPER_LINES, name);

interface KnownSubcommand {
  words: readonly RegExp[];
  line: string;
}

/** Programs with subcommands, each with its rows, the ones with the most words first. */
const SUBCOMMANDS = new Map<string, KnownSubcommand[]>();
for (const name of LINES.keys()) {
  const [program = "", ...words] = name.split(" ");
  if (words.length === 0) continue;
  const patterns = words.map((word) => new RegExp(`^(?:${word.replaceAll("*", "[\\w-]*")})$`));
  SUBCOMMANDS.set(program, [...(SUBCOMMANDS.get(program) ?? []), { words: patterns, line: name }]);
}
for (const rows of SUBCOMMANDS.values()) rows.sort((a, b) => b.words.length - a.words.length);

/** Whether the first plain word of the program is a subcommand. */
export const hasSubcommands = (program: string): boolean => SUBCOMMANDS.has(program);

/** The row of a subcommand, and the number of its words. Undefined for an unknown subcommand. */
export function knownSubcommand(
  program: string,
  texts: readonly string[],
): { row: ProgramRow; words: number } | undefined {
  const found = SUBCOMMANDS.get(program)?.find(({ words }) =>
    words.every((word, at) => word.test(texts[at] ?? "")),
  );
  return found && { row: rowAt(LINES, found.line)!, words: found.words.length };
}

/** Rows are parsed on use, because a call needs few of them. */
function rowAt(lines: ReadonlyMap<string, string>, name: string): ProgramRow | undefined {
  const line = lines.get(SAME_ROW[name] ?? name);
  if (line === undefined) return undefined;
  const row = READ_ROWS.get(line) ?? programRow(line);
  READ_ROWS.set(line, row);
  return row;
}
