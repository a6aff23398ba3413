/** The result of one area of the run. */
export interface AreaRow {
  area: string;
  inputs: number;
  /** How many were accepted: a fuzzer whose inputs are all refused by the parser has tried only the parser. */
  accepted: number;
  /** Refused inputs that were sent a second time to see that nothing changes. */
  resent: number;
  seconds: number;
  /** The longest time that one input, or one turn of the server's event loop, took. */
  slowest_ms: number;
  /** What took that long. */
  slowest: string;
  problems: string[];
}

export function newRow(area: string): AreaRow {
  return { area, inputs: 0, accepted: 0, resent: 0, seconds: 0, slowest_ms: 0, slowest: "", problems: [] };
}

export function noteTime(row: AreaRow, ms: number, what: string): void {
  if (ms <= row.slowest_ms) return;
  row.slowest_ms = ms;
  row.slowest = what;
}

export const isClean = (row: AreaRow): boolean => row.problems.length === 0 && row.inputs > 0;
