/** What each client asked of each object, and when: one line per operation, for the checker. */
export interface Operation {
  model: "approval" | "grant" | "limit" | "halt" | "plan" | "ledger";
  object: string;
  client: number;
  op: string;
  arg: number;
  /** Empty if no answer came. */
  out: "" | "ok" | "refused" | "allowed" | "blocked";
  /** Both in nanoseconds of the driver's monotonic clock. */
  call: number;
  return: number;
}

export const nanoseconds = (ms: number): number => Math.round(ms * 1e6);

/** The operations on one object. */
export class ObjectHistory {
  readonly operations: Operation[] = [];
  private readonly model: Operation["model"];
  private readonly object: string;

  constructor(model: Operation["model"], object: string) {
    this.model = model;
    this.object = object;
  }

  async record<T>(
    client: number,
    op: string,
    arg: number,
    ask: () => Promise<{ out: Operation["out"]; value: T }>,
  ): Promise<T> {
    const call = nanoseconds(performance.now());
    const { out, value } = await ask();
    const end = nanoseconds(performance.now());
    this.operations.push({
      model: this.model,
      object: this.object,
      client,
      op,
      arg,
      out,
      call,
      return: end,
    });
    return value;
  }
}
