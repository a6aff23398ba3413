/** The text of the profile for macOS. Nothing here runs on macOS. */
import { expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { seatbeltProfile } from "./seatbelt.ts";

const PLAN = {
  workspace: "/Users/ann/shop",
  run_folder: "/private/tmp/svc-run-1",
  protected: ["/Users/ann/shop/.git/hooks", "/Users/ann/shop/.envrc"],
  hidden: ["/Users/ann/shop/sub/.env"],
  programs: ["/Users/ann/node"],
  proxy_port: 4_711,
};
const lines = seatbeltProfile(PLAN).split("\n");
const at = (text: string) => lines.findIndex((line) => line.includes(text));
/** Whether a rule with a pattern covers the path. */
const covers = (rule: string, path: string) =>
  lines.some((line) => {
    const pattern = line.startsWith(rule) ? /#"(.*)"\)\)$/.exec(line)?.[1] : undefined;
    return pattern !== undefined && new RegExp(pattern).test(path);
  });

it("denies by default, and lets the command write to its workspace and its own directory alone", () => {
  verifies("beyond.run.mac-profile");
  expect(lines.slice(0, 2)).toEqual(["(version 1)", "(deny default)"]);
  const writes = lines.filter((line) => /^\(allow.*file-write/.test(line));
  expect(writes).toEqual([
    expect.stringContaining('(literal "/dev/null")'),
    '(allow file-read* file-write* (subpath "/Users/ann/shop") (subpath "/private/tmp/svc-run-1"))',
  ]);
  expect(lines.filter((line) => line.includes("/Users/ann") && line.startsWith("(allow"))).toHaveLength(2);
});

it("reaches the proxy alone, by any protocol", () => {
  verifies("beyond.run.mac-profile");
  expect(lines.filter((line) => /network|system-socket/.test(line))).toEqual([
    '(allow network-outbound (remote ip "localhost:4711"))',
  ]);
});

it("keeps protected paths read-only, existing or not, in any case, and hides credentials", () => {
  verifies("beyond.run.mac-profile");
  for (const path of [".envrc", ".ENVRC", ".git/hooks", ".git/hooks/pre-commit", ".Git/Hooks/x"])
    expect([path, covers("(deny file-write* ", `/Users/ann/shop/${path}`)]).toEqual([path, true]);
  for (const path of ["xenvrc", ".envrc2", ".git/HEAD", "deep/.git/hooks"])
    expect([path, covers("(deny file-write* ", `/Users/ann/shop/${path}`)]).toEqual([path, false]);
  expect(covers("(deny file-read* file-write* ", "/Users/ann/shop/sub/.env")).toBe(true);
  // The last matching rule counts, so denials come after permissions.
  expect(at("(deny file-write* ")).toBeGreaterThan(at('(subpath "/Users/ann/shop")'));
  expect(at("(deny file-read* file-write* ")).toBeGreaterThan(at('(subpath "/Users/ann/shop")'));
  for (const path of [".git", "sub"])
    expect(covers("(deny file-write-unlink ", `/Users/ann/shop/${path}`)).toBe(true);
  expect(covers("(deny file-write-unlink ", "/Users/ann/shop/.git/HEAD")).toBe(false);
});

it("refuses paths that its language would read differently", () => {
  verifies("beyond.run.mac-profile");
  for (const bad of ['a"b', "a\\b", "a\nb", "a]b", "a^b"])
    for (const plan of [
      { ...PLAN, workspace: `/Users/${bad}` },
      { ...PLAN, hidden: [`/Users/ann/shop/${bad}`] },
    ])
      expect(() => seatbeltProfile(plan)).toThrow(/must not hold/);
});
