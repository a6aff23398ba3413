/** `svc completion bash|zsh|fish`: prints a completion script generated from the registered commands. */
import { Argument } from "commander";
import { bashScript } from "../completion/bash.ts";
import { fishScript } from "../completion/fish.ts";
import { type CommandNode, commandTree } from "../completion/tree.ts";
import { zshScript } from "../completion/zsh.ts";
import type { RegisterCommand } from "../context.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const satisfies Record<
  string,
  (root: CommandNode) => string
>;
type Shell = keyof typeof SCRIPTS;

const NOTE = `
To load it in every shell:
  bash   echo 'source <(svc completion bash)' >> ~/.bashrc
  zsh    echo 'source <(svc completion zsh)' >> ~/.zshrc     (after compinit)
  fish   svc completion fish > ~/.config/fish/completions/svc.fish`;

export const registerCompletion: RegisterCommand = (program, { io }) => {
  program
    .command("completion")
    .description("Print a shell completion script")
    .addArgument(new Argument("<shell>", "bash, zsh or fish").choices(Object.keys(SCRIPTS)))
    .addHelpText("after", NOTE)
    .action((shell: Shell) => io.write(SCRIPTS[shell](commandTree(program))));
};
