/** `svc completion bash|zsh|fish`: a script made from the commands as they are, so that it cannot go stale. */
import { Argument } from "commander";
import { bashScript } from "../completion/bash.ts";
import { fishScript } from "../completion/fish.ts";
import { type CommandNode, commandTree } from "../completion/tree.ts";
import { zshScript } from "../completion/zsh.ts";
import type { Register } from "../context.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const satisfies Record<
  string,
  (root: CommandNode) => string
>;
type Shell = keyof typeof SCRIPTS;

const NOTE = `
To have it in every shell:
  bash   echo 'source <(svc completion bash)' >> ~/.bashrc
  zsh    echo 'source <(svc completion zsh)' >> ~/.zshrc     (after compinit)
  fish   svc completion fish > ~/.config/fish/completions/svc.fish`;

export const registerCompletion: Register = (program, { io }) => {
  program
    .command("completion")
    .description("print a completion script for a shell")
    .addArgument(new Argument("<shell>", "bash, zsh or fish").choices(Object.keys(SCRIPTS)))
    .addHelpText("after", NOTE)
    .action((shell: Shell) => io.write(SCRIPTS[shell](commandTree(program))));
};
