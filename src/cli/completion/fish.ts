/** Completion script for fish: one line per command, option and argument. */
import { allNodes, type CommandNode, type CompletionValue, type OptionNode } from "./tree.ts";

export function fishScript(root: CommandNode): string {
  const nodes = allNodes(root);
  return `# fish completion for svc. Load it with: svc completion fish | source
function __svc_at
    set -l place svc
    set -l given (commandline -opc)
    for word in $given[2..-1]
        switch "$place/$word"
            case ${nodes
              .slice(1)
              .map(({ place }) => inFish(place))
              .join(" ")}
                set place "$place/$word"
        end
    end
    test "$place" = "$argv[1]"
end
complete -c svc -f
${nodes.flatMap(lines).join("\n")}
`;
}

function lines({ place, children, options, args }: CommandNode): string[] {
  const at = `complete -c svc -n ${inFish(`__svc_at ${place}`)}`;
  const words = args.flatMap((arg) => (typeof arg === "string" ? [] : arg));
  return [
    ...children.map(({ name, about }) => `${at} -a ${inFish(name)} -d ${inFish(about)}`),
    ...(words.length > 0 ? [`${at} -a ${inFish(words.join(" "))}`] : []),
    ...(args.includes("path") ? [`${at} -F`] : []),
    ...options.map((option) => `${at} ${optionWords(option)}`),
  ];
}

function optionWords({ names, about, value }: OptionNode): string {
  const spelt = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  return [...spelt, ...(value === null ? [] : [valueWords(value)]), `-d ${inFish(about)}`].join(" ");
}

function valueWords(value: CompletionValue): string {
  if (value === "path") return "-r -F";
  return value === "text" ? "-x" : `-x -a ${inFish(value.join(" "))}`;
}

/** Inside single quotes, fish treats a backslash specially only before a quote or a backslash. */
function inFish(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
