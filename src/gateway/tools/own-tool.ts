/**
 * The service's own tools, `svc.*`. Each is declared once with its role and its input; most are thin
 * bindings to an operation, which checks everything else.
 */
import * as z from "zod";
import type { App } from "../../app/app.ts";
import { appFor, requireRole } from "../../app/door/access.ts";
import { describeIssues } from "../../app/door/issues.ts";
import type { Operation } from "../../app/door/operation.ts";
import { perform } from "../../app/door/perform.ts";
import { invalid, SvcError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { Principal, Role } from "../../model/roles.ts";
import { textResult } from "../result.ts";
import type { UpstreamUndo } from "../rollback.ts";
import type { BoundRun } from "../runs.ts";
import type { Progress } from "./progress.ts";

/** What the tools stand on. */
export interface ToolServices {
  app: App;
  undo: UpstreamUndo;
  /** Calls that an agent speaks of as they would be made: by dotted names, our own argument taken out. */
  asMade(calls: readonly NamedCall[]): Promise<SpokenCall[]>;
}

export interface NamedCall {
  tool: string;
  args: JsonObject;
}

export interface SpokenCall extends NamedCall {
  /** What stood in the argument that asks for a reason. */
  reason: string | undefined;
}

export interface OwnCall {
  services: ToolServices;
  principal: Principal;
  /** Who asks by the time of the answer; throws where the credential no longer counts. Absent without credentials. */
  again?: (() => Principal) | undefined;
  /** The run of the session, where it has one. */
  run: BoundRun | null;
  signal: AbortSignal;
  /** Tells a client that asked for it that the call goes on. */
  progress?: Progress | undefined;
}

export interface OwnTool<I extends z.ZodType = z.ZodType> {
  name: string;
  description: string;
  role: Role;
  input: I;
  read_only: boolean;
  /** A value to show, or a whole result. */
  run(call: OwnCall, input: z.output<I>): Promise<object>;
}

export class OwnResult {
  readonly result: JsonObject;
  constructor(result: JsonObject) {
    this.result = result;
  }
}

/** Keeps the schema's type inside `run`, and forgets it outside. */
export function ownTool<I extends z.ZodType>(tool: OwnTool<I>): OwnTool {
  return tool as unknown as OwnTool;
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
    if (!parsed.success) throw invalid(describeIssues(parsed.error, "arguments"));
    const app = appFor(call.services.app, call.principal);
    const value = await tool.run({ ...call, services: { ...call.services, app } }, parsed.data);
    // What was only read, perhaps after a long wait, is for those who may still read it; what was done is told.
    if (tool.read_only && call.again !== undefined) requireRole(call.again(), tool.role);
    if (value instanceof OwnResult) return value.result;
    return textResult(JSON.stringify(value), value as JsonObject);
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return textResult(
      error.message,
      { error: error.message, ...(error.extra as JsonObject | undefined) },
      true,
    );
  }
}

export function operate<I extends z.ZodType, O>(
  { services: { app, undo }, principal, signal, again }: OwnCall,
  op: Operation<I, O>,
  input: z.input<I>,
): Promise<O> {
  return perform(op, { app, principal, signal, undo, ...(again && { again }) }, input);
}
