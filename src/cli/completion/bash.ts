/** Completion script for bash: finds the command in the line, then offers its options and arguments. */
import { quoteForShell } from "../../kernel/shell-quote.ts";
import { allNodes, type CommandNode } from "./tree.ts";

export function bashScript(root: CommandNode): string {
  const nodes = allNodes(root);
  return `# bash completion for svc. Load it with: source <(svc completion bash)
_svc() {
  local cur prev word place words i
  COMPREPLY=()
  cur="\${COMP_WORDS[COMP_CWORD]}"
  prev="\${COMP_WORDS[COMP_CWORD-1]}"
  # bash takes --store=files apart into three words.
  if [[ $cur == "=" ]]; then cur=""
  elif [[ $prev == "=" ]]; then prev="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  place=svc
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "$place/$word" in
      ${nodes
        .slice(1)
        .map(({ place }) => quoteForShell(place))
        .join("|")}) place="$place/$word" ;;
    esac
  done
  words=""
  case "$place $prev" in
${valueCases(nodes)}
  esac
  if [[ -z $words ]]; then
    case "$place" in
${wordCases(nodes)}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -o default -F _svc svc
`;
}

/** Cases for the value of an option: its words, or nothing, so that bash offers files. */
function valueCases(nodes: readonly CommandNode[]): string {
  return nodes
    .flatMap(({ place, options }) =>
      options.flatMap(({ names, value }) => {
        if (value === null) return [];
        const pattern = names.map((name) => quoteForShell(`${place} ${name}`)).join("|");
        const then = typeof value === "string" ? "return" : `words=${quoteForShell(value.join(" "))}`;
        return [`    ${pattern}) ${then} ;;`];
      }),
    )
    .join("\n");
}

function wordCases(nodes: readonly CommandNode[]): string {
  return nodes
    .map(({ place, children, options, args }) => {
      const names = options.flatMap((option) => option.names).join(" ");
      const plain = [
        ...children.map(({ name }) => name),
        ...args.flatMap((arg) => (typeof arg === "string" ? [] : arg)),
      ];
      // Offer paths for a path argument. Options are offered once the word begins with a dash.
      const otherwise = plain.length > 0 ? plain.join(" ") : args.includes("path") ? "" : names;
      return `      ${quoteForShell(place)}) if [[ $cur == -* ]]; then words=${quoteForShell(names)}; else words=${quoteForShell(otherwise)}; fi ;;`;
    })
    .join("\n");
}
