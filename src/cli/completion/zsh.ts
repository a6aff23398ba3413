/** Completion script for zsh: like the bash script, with a description for each word. */
import { quoteForShell } from "../../kernel/shell-quote.ts";
import { allNodes, type CommandNode, type CompletionValue } from "./tree.ts";

export function zshScript(root: CommandNode): string {
  const nodes = allNodes(root);
  return `#compdef svc
# zsh completion for svc. Load it with: source <(svc completion zsh)
_svc() {
  local place=svc word prev cur
  local -i i
  local -a offered
  for (( i = 2; i < CURRENT; i++ )); do
    word="\${words[i]}"
    case "$place/$word" in
      (${nodes
        .slice(1)
        .map(({ place }) => quoteForShell(place))
        .join("|")}) place="$place/$word" ;;
    esac
  done
  prev="\${words[CURRENT-1]}"
  cur="\${words[CURRENT]}"
  case "$place $prev" in
${valueCases(nodes)}
  esac
  case "$place" in
${nodes.map(placeCase).join("\n")}
  esac
}
if [[ "\${funcstack[1]}" == "_svc" ]]; then
  _svc "$@"
else
  compdef _svc svc
fi
`;
}

function valueCases(nodes: readonly CommandNode[]): string {
  return nodes
    .flatMap(({ place, options }) =>
      options.flatMap(({ names, value }) => {
        if (value === null) return [];
        const pattern = names.map((name) => quoteForShell(`${place} ${name}`)).join("|");
        return [`    (${pattern}) ${offer(value)}; return ;;`];
      }),
    )
    .join("\n");
}

function offer(value: CompletionValue): string {
  if (value === "path") return "_files";
  if (value === "text") return "_message 'a value'";
  return `compadd -- ${value.map(quoteForShell).join(" ")}`;
}

function placeCase({ place, children, options, args }: CommandNode): string {
  const flags = options.flatMap(({ names, about }) => names.map((name) => described(name, about)));
  const words = children.map(({ name, about }) => described(name, about));
  const first = args[0];
  const plain =
    words.length > 0
      ? `offered=(${words.join(" ")}); _describe 'command' offered`
      : first === undefined
        ? `offered=(${flags.join(" ")}); _describe 'option' offered`
        : args.includes("path") && typeof first === "string"
          ? "_files"
          : offer(first);
  return `    (${quoteForShell(place)})
      if [[ "$cur" == -* ]]; then offered=(${flags.join(" ")}); _describe 'option' offered
      else ${plain}; fi ;;`;
}

/** Formats `name:description` for `_describe`. Escapes colons in the name, which would end it. */
function described(name: string, about: string): string {
  return quoteForShell(`${name.replaceAll(":", "\\:")}:${about.replaceAll(":", "\\:")}`);
}
