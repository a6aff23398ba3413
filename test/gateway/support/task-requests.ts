/** Requests of a client of 2026-07-28 that declares tasks. The SDK's own client takes no such answer. */
import { until } from "../../support/until.ts";
import type { AnyResult } from "./gateway.ts";

const META = "io.modelcontextprotocol";

interface TaskCaller {
  url: string;
  key?: string;
  /** Further capabilities of the client. */
  capabilities?: object;
}

/** One request, whose error is thrown as `<code> <message>`. */
export async function requestWithTasks(
  { url, key = "agent", capabilities = {} }: TaskCaller,
  method: string,
  params: AnyResult,
): Promise<AnyResult> {
  const _meta = {
    [`${META}/protocolVersion`]: "2026-07-28",
    [`${META}/clientInfo`]: { name: "tasks", version: "1" },
    [`${META}/clientCapabilities`]: { extensions: { [`${META}/tasks`]: {} }, ...capabilities },
  };
  const answer = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      "mcp-name": params.name ?? params.taskId ?? "",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
  });
  const text = await answer.text();
  const { result, error } = JSON.parse(text.startsWith("{") ? text : text.match(/^data: (\{.*)$/m)![1]!);
  if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
  return result;
}

/** The task once it has ended. */
export async function endedTask(caller: TaskCaller, taskId: string): Promise<AnyResult> {
  let task: AnyResult;
  await until(async () => {
    task = await requestWithTasks(caller, "tasks/get", { taskId });
    return task.status !== "working" && task.status !== "input_required";
  }, "its end");
  return task;
}
