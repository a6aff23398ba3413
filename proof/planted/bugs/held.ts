/** Mistakes by which somebody could hold the service up, or get out of it what is none of their business. */
import type { Bug } from "../bug.ts";

export const HELD: readonly Bug[] = [
  {
    name: "a glob of any length is compiled",
    file: "src/kernel/glob.ts",
    find: "if (source.length > MAX_GLOB_CHARS) return",
    replace: "if (source.length > MAX_GLOB_CHARS * 1_000_000) return",
    tests: ["src/kernel/glob.test.ts"],
  },
  {
    name: "braces stand for any number of characters",
    file: "src/kernel/glob.ts",
    find: "|| here.chars > MAX_EXPANDED_CHARS) return",
    replace: ") return",
    tests: ["src/kernel/glob.test.ts"],
  },
  {
    name: "counts in a pattern weigh nothing",
    file: "src/model/policy/pattern.ts",
    find: "sum += last * (times - 1);",
    replace: "",
    tests: ["src/model/policy/pattern.test.ts"],
  },
  {
    name: "a YAML key may stand twice",
    file: "src/model/yaml.ts",
    find: "else if (Object.hasOwn(out, key))",
    replace: 'else if (Object.hasOwn(out, key) && key === "")',
    tests: ["src/config/problems.test.ts"],
  },
  {
    name: "a policy that is published is read on the event loop, however long it is",
    file: "src/app/sandbox/reader.ts",
    find: "return reading.text.length <= SHORT_CHARS && !COSTLY.test(reading.text);",
    replace: 'return reading.read === "checked_policy" || reading.text.length <= SHORT_CHARS;',
    tests: ["test/http/beside.test.ts"],
    only: "however large",
  },
  {
    name: "a manifest is published without a look at the others",
    file: "src/registry/manifests.ts",
    find: "await this.reader.fits(path, yaml);",
    replace: "",
    tests: ["test/http/beside.test.ts"],
    only: "refused where it would be closed",
  },
  {
    name: "a redirect to a login page is a delivery",
    file: "src/egress/redirect.ts",
    find: 'if (asksForPage(from.method, status)) return { rule: "redirect_method" };',
    replace:
      'if (asksForPage(from.method, status)) return { hop: { ...from, url, method: "GET", has_body: false } };',
    tests: ["src/egress/egress.test.ts", "test/http/addresses.test.ts"],
  },
  {
    name: "what a receiver says is repeated",
    file: "src/notify/deliver.ts",
    find: "const words = KNOWN_ANSWERS.has(said) ?",
    replace: 'const words = said !== "" ?',
    tests: ["test/http/addresses.test.ts"],
  },
  {
    name: "the address of an anchor's webhook is told",
    file: "src/evidence/sinks.ts",
    find: "maskUrl(sink.url)",
    replace: "sink.url",
    tests: ["test/http/addresses.test.ts"],
  },
  {
    name: "an upstream's address stays in what is said about it",
    file: "src/gateway/upstream/own-secrets.ts",
    find: "return (text) => text.replace(spelled, MASK);",
    replace: "return (text) => (spelled.source === MASK ? MASK : text);",
    tests: ["test/gateway/upstreams.test.ts"],
    only: "says its address",
  },
  {
    name: "prerequisites may form a ring",
    file: "src/model/manifest/load.ts",
    find: "  requiresInRing(entries);",
    replace: "  requiresInRing([]);",
    tests: ["src/model/manifest/load.test.ts"],
  },
  {
    name: "the name of an argument is shown whatever it is",
    file: "src/engine/approvals/requests.ts",
    find: ".map((name) => redactSecrets(name))",
    replace: '.map((name) => (name === "" ? redactSecrets(name) : name))',
    tests: ["test/http/approvals.test.ts"],
    only: "itself a credential",
  },
  {
    name: "a long text in a bundle exhausts the stack",
    file: "src/evidence/record.ts",
    find: "at = endOfString(text, open);",
    replace:
      'at = Math.max(endOfString("", 0), open + /"(?:[^"\\\\]|\\\\.)*"/.exec(text.slice(open))![0].length);',
    tests: ["test/evidence/huge.test.ts"],
    only: "a signature without end",
  },
];
