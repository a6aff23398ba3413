/** The command tree as a completion script needs it, read from the commands themselves. */
import type { Command, Option } from "commander";
import { STORE_KINDS } from "../../store/open.ts";

/** What may stand behind an option or as an argument: one of a few words, a path, or any text. */
export type Value = readonly string[] | "path" | "text";

export interface OptionNode {
  /** `--store`, `-d`; each way to write it. */
  names: readonly string[];
  about: string;
  /** Null for a switch. */
  value: Value | null;
}

export interface CommandNode {
  /** `svc`, `svc/halt`, `svc/halt/add`. */
  place: string;
  name: string;
  about: string;
  options: readonly OptionNode[];
  args: readonly Value[];
  children: readonly CommandNode[];
}

const PATH_NAMES = /^(?:file|files|path|dir|folder|prefix|anchors|plans)\b/;
/** Options whose words are told in their description, so that an error can say more. */
const KNOWN_VALUES: Readonly<Record<string, readonly string[]>> = {
  "--store": STORE_KINDS,
  "--status": ["succeeded", "failed"],
};

export function commandTree(command: Command, parent = ""): CommandNode {
  const place = parent === "" ? command.name() : `${parent}/${command.name()}`;
  return {
    place,
    name: command.name(),
    about: oneLine(command.description()),
    options: command
      .createHelp()
      .visibleOptions(command)
      .map((option) => ({
        names: [option.long, option.short].filter((name) => name !== undefined),
        about: oneLine(option.description),
        value: valueBehind(option),
      })),
    args: command.registeredArguments.map(
      (argument) => argument.argChoices ?? (PATH_NAMES.test(argument.name()) ? "path" : "text"),
    ),
    children: command.commands.map((child) => commandTree(child, place)),
  };
}

export function allNodes(root: CommandNode): CommandNode[] {
  return [root, ...root.children.flatMap(allNodes)];
}

function valueBehind(option: Option): Value | null {
  if (!option.required && !option.optional) return null;
  const known = option.argChoices ?? KNOWN_VALUES[option.long ?? ""];
  if (known !== undefined) return known;
  const placeholder = /[<[]([^>\]]*)[>\]]/.exec(option.flags)?.[1] ?? "";
  return PATH_NAMES.test(placeholder) ? "path" : "text";
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
