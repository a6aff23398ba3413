/** The routes of the hook against those of the service. */
import { expect, it } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { HTTP_TABLE } from "../http/api/http-table.ts";
import { HOOK_ROUTES } from "./service.ts";

it("names each route as the service does", () => {
  verifies("beyond.hooks.stream");
  const offered = Object.fromEntries(HTTP_TABLE.map(({ op, method, path }) => [op.id, `${method} ${path}`]));
  expect(HOOK_ROUTES).toEqual(
    Object.fromEntries(Object.keys(HOOK_ROUTES).map((name) => [name, offered[name]])),
  );
});
