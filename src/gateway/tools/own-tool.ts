/**
 * The service's own tools, `svc.*`. Each is declared with its role and input. Most are thin bindings to an operation,
 * which makes all other checks.
 */
import * as z from "zod";
import type { CallerPrincipal, PrincipalRole } from "../../govern/roles.ts";
import { invalidError, messageWithLink, SvcError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { appFor, requireRole } from "../../operations/pipeline/access.ts";
import { dispatchOperation } from "../../operations/pipeline/dispatch.ts";
import type { ServiceOperation } from "../../operations/pipeline/operation.ts";
import { describeIssues } from "../../operations/pipeline/validation-messages.ts";
import { textResult } from "../call/result.ts";
import type { UpstreamUndo } from "../call/rollback.ts";
import type { BoundRun } from "../session/runs.ts";
import type { ReportProgress } from "./progress.ts";

/** Dependencies of the tools. */
export interface ToolServices {
  app: ServiceApp;
  undo: UpstreamUndo;
  /** Translates calls named by an agent to dotted tool names, and separates the reason argument. */
  asMade(calls: readonly NamedCall[]): Promise<CallWithReason[]>;
}

export interface NamedCall {
  tool: string;
  args: JsonObject;
}

export interface CallWithReason extends NamedCall {
  /** Value of the reason argument. */
  reason: string | undefined;
}

export interface OwnCall {
  services: ToolServices;
  principal: CallerPrincipal;
  /**
   * Checks the credential again at the time of the answer. Throws if it has become invalid. Absent without credentials.
   */
  again?: (() => CallerPrincipal) | undefined;
  /** The run of the session, if it has one. */
  run: BoundRun | null;
  signal: AbortSignal;
  /** Reports progress to a client that requested it. */
  progress?: ReportProgress | undefined;
}

export interface OwnTool<I extends z.ZodType = z.ZodType> {
  name: string;
  description: string;
  role: PrincipalRole;
  input: I;
  read_only: boolean;
  /** Returns a value to show, or a complete result. */
  run(call: OwnCall, input: z.output<I>): Promise<object>;
}

export class OwnResult {
  readonly result: JsonObject;
  constructor(result: JsonObject) {
    this.result = result;
  }
}

/** Types `run` by its own schema, and erases the type outside. */
export function ownTool<I extends z.ZodType>(tool: OwnTool<I>): OwnTool {
  return tool as OwnTool;
}

const definitions = new WeakMap<OwnTool, JsonObject>();

export function definitionOf(tool: OwnTool): JsonObject {
  const known = definitions.get(tool);
  if (known !== undefined) return known;
  const { name, description, input, read_only } = tool;
  const { $schema: _, ...inputSchema } = z.toJSONSchema(input, { io: "input" }) as JsonObject;
  const annotations = {
    readOnlyHint: read_only,
    ...(read_only ? {} : { destructiveHint: true }),
    openWorldHint: false,
  };
  const definition = { name, description, inputSchema, annotations };
  definitions.set(tool, definition);
  return definition;
}

export async function callOwnTool(tool: OwnTool, call: OwnCall, raw: JsonObject): Promise<JsonObject> {
  try {
    requireRole(call.principal, tool.role);
    const parsed = tool.input.safeParse(raw);
    if (!parsed.success) throw invalidError(describeIssues(parsed.error, "arguments"));
    const app = appFor(call.services.app, call.principal);
    const value = await tool.run({ ...call, services: { ...call.services, app } }, parsed.data);
    // Data read after a long wait is only for callers who can still read it. The result of an action is always
    // returned.
    if (tool.read_only && call.again !== undefined) requireRole(call.again(), tool.role);
    if (value instanceof OwnResult) return value.result;
    return textResult(JSON.stringify(value), value as JsonObject);
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return textResult(
      messageWithLink(error),
      { error: error.message, ...(error.extra as JsonObject | undefined) },
      true,
    );
  }
}

export function performOperation<I extends z.ZodType, O>(
  { services: { app, undo }, principal, signal, again }: OwnCall,
  op: ServiceOperation<I, O>,
  input: z.input<I>,
): Promise<O> {
  return dispatchOperation(op, { app, principal, signal, undo, ...(again && { again }) }, input);
}
