/** The same calls in the words of each client. */
import type { RealClient } from "./install.ts";
import type { ScriptedCall } from "./model-server.ts";

interface ClientCalls {
  shell(command: string): ScriptedCall;
  /** Creates or replaces a file of the workspace. */
  write(path: string, text: string, workspace: string): ScriptedCall;
  /** Lets a sub-agent work on a prompt. */
  agent(prompt: string): ScriptedCall[];
}

const addFile = (path: string, text: string): string =>
  `*** Begin Patch\n*** Add File: ${path}\n${text.replace(/^/gm, "+").replace(/\n\+$/, "\n")}*** End Patch\n`;

/** Newer models of Codex call its tools from a script. */
const script = (text: string): ScriptedCall => ({ tool: "exec", input: text });

export const CALLS: Record<RealClient, ClientCalls> = {
  gemini: {
    shell: (command) => ({ tool: "run_shell_command", input: { command } }),
    write: (path, content) => ({ tool: "write_file", input: { file_path: path, content } }),
    agent: (prompt) => [{ tool: "invoke_agent", input: { agent_name: "generalist", prompt } }],
  },
  codex: {
    shell: (command) =>
      script(`const r = await tools.exec_command({cmd: ${JSON.stringify(command)}}); text(r.output);`),
    write: (path, text) => script(`text(await tools.apply_patch(${JSON.stringify(addFile(path, text))}));`),
    agent: (prompt) => [
      {
        tool: "collaboration.spawn_agent",
        input: { task_name: "helper", message: prompt, fork_turns: "none" },
      },
      { tool: "collaboration.wait_agent", input: { timeout_ms: 20_000 } },
    ],
  },
  "claude-code": {
    shell: (command) => ({ tool: "Bash", input: { command, description: "a step" } }),
    write: (path, content, workspace) => ({
      tool: "Write",
      input: { file_path: `${workspace}/${path}`, content },
    }),
    agent: (prompt) => [
      {
        tool: "Agent",
        input: { description: "help", prompt, subagent_type: "general-purpose", run_in_background: false },
      },
    ],
  },
};
