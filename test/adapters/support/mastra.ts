/**
 * What the guide's program uses of `@mastra/core` 1.71, as it documents it: an agent calls its tools in its model's
 * turns.
 */

interface Tool {
  id: string;
  execute(input: unknown, context: unknown): Promise<unknown>;
}

/** Plays the model: which call comes next, or what it says in the end. */
export interface ScriptedModel {
  next(told: unknown): { tool: string; args: unknown } | { text: string };
}

export const createTool = (definition: Tool): Tool => definition;

export class Agent {
  private readonly model: ScriptedModel;
  private readonly tools: Record<string, Tool>;

  constructor({ model, tools }: { model: ScriptedModel; tools: Record<string, Tool> }) {
    this.model = model;
    this.tools = tools;
  }

  async generate(prompt: string, { memory }: { memory: { thread: string; resource: string } }) {
    let told: unknown = prompt;
    for (let turn = 1; ; turn++) {
      const said = this.model.next(told);
      if ("text" in said) return said;
      const suspend = async () => {};
      const agent = {
        toolCallId: `call-${turn}`,
        threadId: memory.thread,
        resourceId: memory.resource,
        suspend,
      };
      told = await this.tools[said.tool]!.execute(said.args, { agent });
    }
  }
}
