/** Command tree for the completion scripts, read from the registered commands. */
import type { Command, Option } from "commander";
import { STORE_KINDS } from "../../store/open.ts";

/** Value of an option or argument: one of a few words, a path, or any text. */
export type CompletionValue = readonly string[] | "path" | "text";

export interface OptionNode {
  /** All spellings, such as `--store` or `-d`. */
  names: readonly string[];
  about: string;
  /** Null for a switch. */
  value: CompletionValue | null;
}

export interface CommandNode {
  /** Path of the command: `svc`, `svc/halt`, `svc/halt/add`. */
  place: string;
  name: string;
  about: string;
  options: readonly OptionNode[];
  args: readonly CompletionValue[];
  children: readonly CommandNode[];
}

const PATH_NAMES = /^(?:file|files|path|dir|folder|prefix|anchors|plans)\b/;
/** Values of options that declare no choices, because the command gives a better error than the parser would. */
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

function valueBehind(option: Option): CompletionValue | null {
  if (!option.required && !option.optional) return null;
  const known = option.argChoices ?? KNOWN_VALUES[option.long ?? ""];
  if (known !== undefined) return known;
  const placeholder = /[<[]([^<[>\]]*)[>\]]/.exec(option.flags)?.[1] ?? "";
  return PATH_NAMES.test(placeholder) ? "path" : "text";
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
