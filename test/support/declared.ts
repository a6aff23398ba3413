/** Holds an answer against what its operation declares, so that the API document cannot say anything else. */
import { expect } from "vitest";
import { HTTP_TABLE } from "../../src/api/table.ts";
import { ERRORS, type ErrorCode } from "../../src/kernel/errors.ts";

/** What any operation may answer: bad input, no credential, no right, no body that can be read, no store. */
const ALWAYS = new Set([400, 401, 403, 413, 415, 503]);

const ROUTES = HTTP_TABLE.map((row) => ({
  row,
  pattern: new RegExp(`^${row.path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
}));

export function expectDeclared(method: string, path: string, status: number, body: unknown): void {
  const plain = path.split("?", 1)[0]!;
  const found = ROUTES.find(({ row, pattern }) => row.method === method && pattern.test(plain));
  if (found === undefined) return;
  const { op, ...row } = found.row;
  const errors = Object.keys(op.errors ?? {}).map((code) => ERRORS[code as ErrorCode].http);
  if (op.run_of !== undefined) errors.push(409);
  const successes = [row.status, ...row.also.map((one) => one.status)];
  expect([...ALWAYS, ...errors, ...successes], `${op.id} answers ${status}`).toContain(status);
  if (!successes.includes(status) || "content_types" in op.output) return;
  const shape =
    row.also.find((one) => one.status === status)?.shape ??
    ("text_of" in op.output ? op.output.text_of : op.output);
  const parsed = shape.safeParse(body);
  expect(parsed.error?.issues ?? [], `${op.id} answers as it declares`).toEqual([]);
}
