/**
 * An operation is declared once: who may call it, what it takes, what it answers, what it does. It knows no
 * transport. HTTP, console, command line, gateway and library are bindings that pass operations by value.
 */

import type { z } from "zod";
import type { Seen } from "../../engine/before.ts";
import type { ErrorCode } from "../../kernel/errors.ts";
import type { Json } from "../../kernel/json.ts";
import type { Principal, Role } from "../../model/roles.ts";
import type { ReadBy } from "../../model/run.ts";
import type { UndoMeans } from "../../rollback/execute.ts";
import type { App } from "../app.ts";

/** Who is calling, and what belongs to this one call. */
export interface Caller {
  app: App;
  principal: Principal;
  /** Who asks by now, for an answer that had to wait; throws where the credential no longer counts. */
  again?: () => Principal | Promise<Principal>;
  /** Aborts when the caller goes away or the service stops. */
  signal: AbortSignal;
  /** Holds the data anyway, as whoever sits at the machine does: features that are off for others are not. */
  at_the_data?: boolean;
  /** The W3C `traceparent` that came with the call, for a link between the caller's trace and the run's. */
  traceparent?: string | undefined;
  /** What the surface holds against an intent, beside everything the engine knows; clients cannot set it. */
  objections?: readonly string[];
  /** The call is a drill, which proves the undo that a policy may ask a proof of; clients cannot set it. */
  drill?: boolean;
  /** Told when the answer is one that was given before, under the same Idempotency-Key. */
  replayed?(): void;
  /** What the surface read for the card of an intent; clients cannot set it. */
  seen?: Seen | undefined;
  /** The input schema that the tool's server gave; clients cannot set it. */
  input_schema?: Json | undefined;
  /** Which surface reads what is there before and after a call; without one it is the agent's word. */
  reads_by?: ReadBy;
  /** What the surface itself undoes with and looks through; clients cannot set it. */
  undo?: UndoMeans | undefined;
}

/** An answer that is not JSON. */
export class Content {
  readonly type: string;
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
  readonly filename: string | undefined;
  /** What its reader must be told beside it, in one line. */
  readonly problem: string | undefined;
  constructor(type: string, body: Content["body"], filename?: string, problem?: string) {
    this.type = type;
    this.body = body;
    this.filename = filename;
    this.problem = problem;
  }
}

/** JSON that was made elsewhere, in a thread: it may be long, and is read only by whoever wants its value. */
export class JsonText<T> {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  read(): T {
    return JSON.parse(this.text) as T;
  }
}

type Shape = z.ZodType;
/** Documents are described by their media types, everything else by a schema. */
export type Output = Shape | { text_of: Shape } | { content_types: readonly string[] };

export interface Operation<I extends Shape = Shape, O = unknown> {
  readonly id: string;
  readonly summary: string;
  readonly role: Role;
  /** Open to every authenticated role; what each sees of it is narrowed by ownership. */
  readonly any_role?: boolean;
  /** Where a delegate without the role may act too; the operation then checks by itself. */
  readonly role_or_delegate?: boolean;
  /** Where the agent whose run it is may act without the role, if its key has `self_rollback`. */
  readonly role_or_owner?: boolean;
  readonly input: I;
  readonly output: Output;
  /**
   * Whether those who are bound to a tenant may call it: what it shows and does is then confined to that tenant. By
   * default it is what is about one run; everything else says so, and is refused to them otherwise.
   */
  readonly within_tenant?: boolean;
  /** Errors that it may answer beside those every operation has, with their meaning. */
  readonly errors?: Partial<Record<ErrorCode, string>>;
  /** The run that it is about. Asked of what came in, before anything of it was checked. */
  run_of?(input: Partial<z.output<I>>): unknown;
  /** It only looks, and need not see the newest: where there is a replica, that is asked. */
  readonly reads_replica?: boolean;
  /** Whether an answer may take as long as the caller is willing to wait. */
  readonly waits?: boolean;
  /** Why the feature is not enabled here, or null when it is. Asked only after the role was checked. */
  feature?(app: App, caller?: Caller): string | null;
  run(caller: Caller, input: z.output<I>): Promise<O>;
}

/** Only infers: an answer must have the declared shape, and callers get the answer's own, closer type. */
export function operation<I extends Shape, S extends Output, O extends AnswerOf<S>>(
  op: Omit<Operation<I, O>, "output" | "run"> & {
    output: S;
    run(caller: Caller, input: z.output<I>): Promise<O>;
  },
): Operation<I, O> {
  return op;
}

/** What performing the operation answers. */
export type AnswerTo<Op extends Operation> = Awaited<ReturnType<Op["run"]>>;

type AnswerOf<S extends Output> = S extends Shape
  ? Answer<z.input<S>>
  : S extends { text_of: infer T extends Shape }
    ? JsonText<Answer<z.input<T>>>
    : object;

/** What may be answered where `T` is declared: fields may be read-only, and an open object may say more. */
type Answer<T> = T extends readonly (infer E)[]
  ? readonly Answer<E>[]
  : T extends object
    ? { readonly [K in keyof T as string extends K ? never : K]: Answer<T[K]> }
    : T;
