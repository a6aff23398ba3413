/**
 * Declares an operation once: its roles, input, output and implementation. An operation knows no transport. HTTP,
 * console, CLI, gateway and library are bindings that pass operations by value.
 */
import type { z } from "zod";
import type { CardRead } from "../../govern/decide/before-state.ts";
import type { CallerPrincipal, PrincipalRole } from "../../govern/roles.ts";
import type { ReadBy } from "../../govern/runs/run.ts";
import type { ErrorCode } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { UndoToolOptions } from "../../rollback/undo/execute.ts";
import type { ServiceApp } from "../app.ts";

/** The caller's identity and the data of this one call. */
export interface ApiCaller {
  app: ServiceApp;
  principal: CallerPrincipal;
  /** Authenticates the caller again after a wait. Throws if the credential is no longer valid. */
  again?: () => CallerPrincipal | Promise<CallerPrincipal>;
  /** Aborts when the caller disconnects or the service stops. */
  signal: AbortSignal;
  /**
   * True for a caller with direct access to the data, such as the local CLI. It can use features that are off for
   * others.
   */
  at_the_data?: boolean;
  /** The call's W3C `traceparent`, which links the caller's trace to the run's. */
  traceparent?: string | undefined;
  /** The surface's own reasons to block an intent. Clients cannot set them. */
  objections?: readonly string[];
  /** Marks a drill, which tests the undo that a policy may require. Clients cannot set it. */
  drill?: boolean;
  /** Called when the response is an earlier one, repeated for the same Idempotency-Key. */
  replayed?(): void;
  /** State that the surface read for an intent's card. Clients cannot set it. */
  seen?: CardRead | undefined;
  /** The tool's input schema from its server. Clients cannot set it. */
  input_schema?: JsonValue | undefined;
  /** The surface that reads the state before and after a call. If absent, the agent reports it. */
  reads_by?: ReadBy;
  /** The surface's own tools to undo and read. Clients cannot set them. */
  undo?: UndoToolOptions | undefined;
}

/** A response that is not JSON. */
export class DocumentContent {
  readonly type: string;
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
  readonly filename: string | undefined;
  /** One-line warning for the reader of the response. */
  readonly problem: string | undefined;
  constructor(type: string, body: DocumentContent["body"], filename?: string, problem?: string) {
    this.type = type;
    this.body = body;
    this.filename = filename;
    this.problem = problem;
  }
}

/** JSON text, often long and from a thread. Surfaces send it as it is, and other callers parse it. */
export class JsonText<T> {
  /** A string, or UTF-8. */
  readonly body: string | Uint8Array;
  constructor(body: string | Uint8Array) {
    this.body = body;
  }
  read(): T {
    return JSON.parse(typeof this.body === "string" ? this.body : UTF8.decode(this.body)) as T;
  }
}
const UTF8 = new TextDecoder();

type Shape = z.ZodType;
/** Documents declare their media types; other responses declare a schema. */
export type OperationOutput = Shape | { text_of: Shape } | { content_types: readonly string[] };

export interface ServiceOperation<I extends Shape = Shape, O = unknown> {
  readonly id: string;
  readonly summary: string;
  readonly role: PrincipalRole;
  /** Open to every authenticated role. Ownership limits the results. */
  readonly any_role?: boolean;
  /** Also open to delegates without the role; the operation then checks the delegation itself. */
  readonly role_or_delegate?: boolean;
  /** Also open to the agent that opened the run, if its key has `self_rollback`. */
  readonly role_or_owner?: boolean;
  readonly input: I;
  readonly output: OperationOutput;
  /**
   * Whether principals bound to a tenant can call the operation, confined to that tenant. By default only operations on
   * one run are open to them; any other has to declare this flag.
   */
  readonly within_tenant?: boolean;
  /** Errors beyond those of every operation, with their meaning. */
  readonly errors?: Partial<Record<ErrorCode, string>>;
  /** Run id of the call, read from the input before validation. */
  run_of?(input: Partial<z.output<I>>): unknown;
  /** True for a read that tolerates stale data; it uses a replica if there is one. */
  readonly reads_replica?: boolean;
  /** Whether a response may take as long as the caller is willing to wait. */
  readonly waits?: boolean;
  /** Why the feature is not enabled here, or null. Called only after the role check. */
  feature?(app: ServiceApp, caller?: ApiCaller): string | null;
  run(caller: ApiCaller, input: z.output<I>): Promise<O>;
}

/** Only infers types: a response must have the declared shape, and callers get its own narrower type. */
export function defineOperation<I extends Shape, S extends OperationOutput, O extends AnswerOf<S>>(
  op: Omit<ServiceOperation<I, O>, "output" | "run"> & {
    output: S;
    run(caller: ApiCaller, input: z.output<I>): Promise<O>;
  },
): ServiceOperation<I, O> {
  return op;
}

/** Response type of an operation. */
export type ResponseOf<Op extends ServiceOperation> = Awaited<ReturnType<Op["run"]>>;

type AnswerOf<S extends OperationOutput> = S extends Shape
  ? Answer<z.input<S>>
  : S extends { text_of: infer T extends Shape }
    ? JsonText<Answer<z.input<T>>>
    : object;

/** Types assignable to a declared response `T`: fields may be read-only, and an open object may have more fields. */
type Answer<T> = T extends readonly (infer E)[]
  ? readonly Answer<E>[]
  : T extends object
    ? { readonly [K in keyof T as string extends K ? never : K]: Answer<T[K]> }
    : T;
