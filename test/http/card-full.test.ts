/** A card hides nothing of a call: every value in full once, no diff that leaves a member out, no name that passes for a label. */
import { beforeAll, describe, expect, it } from "vitest";
import { runAtOnce } from "../../src/kernel/pausable-work.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- tool: mail.send
  effect: irreversible
  permission: p
  audit: {redaction: [$args.secret, $args.nested]}
  card: {title: "Mail {$args.to}: {$args.subject}", fields: [{label: Sum, path: $args.amount, as: money}]}
- {tool: shell.run, effect: irreversible, permission: p, card: {title: "Run {$args.command}"}}
- {tool: all.in, effect: irreversible, permission: p, card: {title: "Do {$args}"}}
- tool: file.edit
  effect: irreversible
  permission: p
  card: {title: "Edit {$args.path}", fields: [{label: Edit, path: $args.edit, as: diff}]}
- tool: file.patch
  effect: irreversible
  permission: p
  card: {title: Patch, fields: [{label: Patch, path: $args, as: diff}]}
- {tool: plain.call, effect: irreversible, permission: p}
`;
const POLICY = `
version: 1
rules: [{id: ask, match: {tool: "*"}, action: require_approval, reason: ask}]
`;

interface Field {
  label: string;
  path: string;
  text: string;
  size?: string;
  lines?: { kind: string; text: string }[];
  remarks?: string[];
  undeclared?: true;
  uncovered?: Field[];
  abridged?: true;
}

let s: TestServer;
let n = 0;
beforeAll(async () => {
  s = await testServer({ manifests: MANIFESTS, policy: POLICY });
});

async function cardOf(tool: string, args: unknown) {
  const run_id = `full${n++}`;
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
  const asked = await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, { tool, args, reason: "r" });
  const id = /apr_[0-9a-f-]{36}/.exec(asked.text)![0];
  const { body, status } = await s.call("approver", "GET", `/v1/approvals/${id}/card`);
  expect(status).toBe(200);
  return body;
}
const named = (fields: Field[], label: string): Field => fields.find((field) => field.label === label)!;

describe("what a reader does not see", () => {
  it("is pointed out: white space at the ends of a value, and signs without a shape", async () => {
    verifies("beyond.card.whole-value");
    const card = await cardOf("file.edit", {
      path: "a.txt ",
      mode: "  ",
      name: " x",
      lines: "a \n b ",
      plain: "a b",
    });
    const remarks = Object.fromEntries(card.more.map((one: Field) => [one.label, one.remarks ?? []]));
    expect(remarks).toMatchObject({
      path: ["ends with white space"],
      '"mode"': expect.arrayContaining(["white space only, 2 characters"]),
      '"name"': expect.arrayContaining(["begins with white space"]),
    });
    expect(remarks['"plain"'].join()).not.toContain("white space");
    expect(card.text).toContain("  a \n   b \n");
    const odd = await cardOf("plain.call", { a: "r\ufe0fm", b: "x\u2800", c: "\u2764\ufe0f 1\ufe0f\u20e3" });
    expect(odd.more.map(({ text }: Field) => text)).toEqual([
      "r\\ufe0fm",
      "x\\u2800",
      "\u2764\ufe0f 1\ufe0f\u20e3",
    ]);
  });
});

describe("a diff on a card", () => {
  it("is not drawn where a replacement has two pairs, and the whole argument is shown", async () => {
    verifies("beyond.card.diff-accounts");
    const edit = {
      oldText: "colour",
      newText: "color",
      old_string: "if (!verify(user)) throw 1",
      new_string: "/* EVIL */",
    };
    for (const value of [edit, [edit], [{ old: "a", new: "b" }, edit]]) {
      const card = await cardOf("file.edit", { path: "a.ts", edit: value });
      const field = named(card.fields, "Edit");
      expect(field.lines).toBeUndefined();
      expect(field.remarks).toContain("several old or new texts; shown without a diff");
      expect(field.text).toContain("/* EVIL */");
      expect(card.text).toContain("/* EVIL */");
      expect(card.text).toContain("if (!verify(user)) throw 1");
    }
  });

  it("is not drawn if a side is missing twice, isn't text, or is single next to a pair", async () => {
    verifies("beyond.card.diff-accounts");
    for (const value of [
      { old: "a", new: 5 },
      { old: "a", new: "b", after: "c" },
      { old_str: "a", newText: "b" },
      [
        { old: "a", new: "b" },
        { old: "x", new: ["y"] },
      ],
    ]) {
      const field = named((await cardOf("file.edit", { path: "a", edit: value })).fields, "Edit");
      expect(field.lines, JSON.stringify(value)).toBeUndefined();
      expect(field.text).toBe(JSON.stringify(value, null, 2));
    }
  });

  it("has every other member of the argument next to it, marked", async () => {
    verifies("beyond.card.diff-uncovered");
    const edit = [
      { oldText: "a", newText: "b" },
      { oldText: "c", newText: "d", replace_all: true, "old\u200bText": "zwsp", оldText: { deep: ["all"] } },
    ];
    const card = await cardOf("file.edit", { path: "a", edit });
    const field = named(card.fields, "Edit");
    expect(field.lines!.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      "removed a",
      "added b",
      "gap ",
      "removed c",
      "added d",
    ]);
    expect(field.uncovered!.map(({ label, path, text }) => [label, path, text])).toEqual([
      ['"replace_all" of entry 2', "$args.edit[1].replace_all", "true"],
      ['"old\\u200bText" (spelled old\\u{200b}Text) of entry 2', expect.any(String), "zwsp"],
      [
        '"оldText" (spelled \\u{43e}ldText) of entry 2',
        expect.any(String),
        '{\n  "deep": [\n    "all"\n  ]\n}',
      ],
    ]);
    for (const one of field.uncovered!) expect(one.remarks).toContain("not part of the diff");
    expect(card.text).toContain('  "replace_all" of entry 2 (not part of the diff): true');
    expect(card.text).toContain('"all"');
    const patch = await cardOf("file.patch", {
      path: "a",
      old_string: "x",
      new_string: "y",
      replace_all: true,
    });
    expect(named(patch.fields, "Patch").uncovered!.map(({ label, text }) => [label, text])).toEqual([
      ['"path"', "a"],
      ['"replace_all"', "true"],
    ]);
  });

  it("leaves no line of the value out of the card, and gives way to the texts where it would be too long", async () => {
    verifies("beyond.card.whole-value", "beyond.card.diff-too-long");
    const lines = Array.from({ length: 30 }, (_, i) => `line ${i}`);
    const changed = lines.with(15, "other");
    const folded = await cardOf("file.edit", {
      path: "a",
      edit: { old: lines.join("\n"), new: changed.join("\n") },
    });
    const field = named(folded.fields, "Edit");
    expect(field.abridged).toBe(true);
    expect(folded.text).toContain("Edit, in full:");
    expect(folded.text).toContain("line 0\\nline 1\\n");
    const long = Array.from({ length: 3_000 }, (_, i) => `old ${i}`).join("\n");
    const big = await cardOf("file.edit", {
      path: "a",
      edit: { old: long, new: long.replaceAll("old", "new") },
    });
    const text = named(big.fields, "Edit");
    expect(text.lines).toBeUndefined();
    expect(text.remarks).toContain("too long for a line diff; both texts are shown in full");
    expect(text.text).toContain("old 2999");
    expect(text.text).toContain("new 2999");
  });
});

describe("every value", () => {
  it("that the title cuts is shown in full below it", async () => {
    verifies("beyond.card.whole-value");
    const command = `echo ${"x".repeat(200)}; rm -rf /srv/data`;
    const shell = await cardOf("shell.run", { command });
    expect(shell.sentence).not.toContain("rm -rf");
    expect(named(shell.more, "command")).toMatchObject({ text: command, size: "223 characters" });
    expect(shell.text).toContain("; rm -rf /srv/data");
    const to = Array.from({ length: 12 }, (_, i) => `someone.${i}@example.com`);
    const mail = await cardOf("mail.send", { to, subject: "short", amount: 1 });
    expect(named(mail.more, "to")).toMatchObject({ size: "12 entries" });
    expect(named(mail.more, "to").text).toContain("someone.11@example.com");
    expect(mail.more.map(({ label }: Field) => label)).not.toContain("subject");
    const whole = await cardOf("all.in", { a: "y".repeat(300), b: "end" });
    expect(whole.text).toContain('"b": end');
    expect(whole.text).toContain("y".repeat(300));
  });

  it("is uncut, however long it and its name are", async () => {
    verifies("beyond.card.whole-value");
    const body = "z".repeat(60_000);
    const name = `${"n".repeat(300)}-end`;
    const card = await cardOf("plain.call", { body, [name]: 1, wide: "w".repeat(3_000) });
    expect(named(card.more, '"body"')).toMatchObject({ text: body, size: "60,000 characters" });
    expect(named(card.more, `"${name}"`).text).toBe("1");
    expect(card.text).toContain(body);
    expect(card.text).toContain(name);
    const edit = { old: "a", new: `b${"c".repeat(5_000)}` };
    const changed = named((await cardOf("file.edit", { path: "a", edit })).fields, "Edit");
    expect(changed.lines!.at(-1)!.text).toBe(edit.new);
  });

  it("that is masked is shown as masked, with its length", async () => {
    verifies("beyond.card.mask-length");
    const token = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
    const args = { to: "a", secret: "four and twenty letters.", nested: { a: 1 }, note: `use ${token} now` };
    const card = await cardOf("mail.send", args);
    expect(named(card.more, "secret").text).toBe("[REDACTED, 24 characters]");
    expect(named(card.more, "nested").text).toBe("[REDACTED, 7 characters]");
    expect(named(card.more, '"note"').text).toBe("use [REDACTED:github_token, 40 characters] now");
    expect(card.arguments).toEqual({
      to: "a",
      secret: "[REDACTED]",
      nested: "[REDACTED]",
      note: "use [REDACTED:github_token] now",
    });
    expect(card.text).toContain("secret: [REDACTED, 24 characters]");
    expect(JSON.stringify(card)).not.toContain(token);
  });
});

describe("a name that the agent chose", () => {
  it("is quoted, so that it does not look like a label, and is pointed out", async () => {
    verifies("beyond.card.name-quoted", "beyond.card.undeclared");
    const card = await cardOf("mail.send", { to: "a", amount: 10, Sum: "99,999", 'Re"ason': "none" });
    expect(named(card.fields, "Sum").text).toBe("10");
    const quoted = named(card.more, '"Sum"');
    expect(quoted).toMatchObject({ text: "99,999", undeclared: true });
    expect(quoted.remarks).toEqual(["not declared by the tool", "the name looks like the label Sum"]);
    expect(card.text.split("\n").filter((line: string) => line.startsWith("Sum:"))).toEqual(["Sum: 10"]);
    expect(card.text).toContain('"Re\\"ason" (not declared by the tool): none');
  });

  it("is spelled out where it looks like another", async () => {
    verifies("beyond.card.name-quoted");
    const card = await cardOf("mail.send", { to: "a", tо: "cyrillic", "t\u200bo": "hidden", ＴＯ: "wide" });
    expect(card.more.map(({ label, remarks }: Field) => [label, remarks?.at(-1)])).toEqual([
      ['"tо" (spelled t\\u{43e})', "not declared by the tool"],
      ['"t\\u200bo" (spelled t\\u{200b}o)', expect.stringContaining('looks like "to"')],
      ['"ＴＯ" (spelled \\u{ff34}\\u{ff2f})', expect.stringContaining('looks like "to"')],
    ]);
  });

  it("is spelled out inside a value, at any depth", async () => {
    verifies("beyond.card.names-inside");
    const { more, text } = await cardOf("plain.call", {
      order: { items: [{ "\u0430mount": 9_000, amount: 9 }] },
      plain: { amount: 9 },
    });
    const remark = 'contains the names "\u0430mount" (spelled \\u{430}mount)';
    expect(named(more, '"order"').remarks).toContain(remark);
    expect(text).toContain(remark);
    expect(named(more, '"plain"').remarks ?? []).toEqual([]);
  });
});

it("remarks on a text that reads like another value, and shows it even if the title does", async () => {
  verifies("beyond.card.lookalikes");
  const texts = { a: "false", b: "null", c: "", d: "[]", e: '{"to": 1}', f: "(not given)", g: "a\r\nb" };
  const values = { h: false, i: null, j: [], k: "12", l: "see [1] or {2}", m: "yes" };
  const { more, text } = await cardOf("plain.call", { ...texts, ...values });
  const remarksOf = (name: string) => named(more, `"${name}"`).remarks ?? [];
  const expected = ["a text", "a text", "empty text", "a text", "a text", "a text", "lines end with \\r\\n"];
  expect(Object.keys(texts).map((name) => remarksOf(name)[0])).toEqual(expected);
  for (const name of Object.keys(values)) expect(remarksOf(name), name).toEqual([]);
  expect(text).toContain('"a" (a text): false');
  const masked = await cardOf("mail.send", { to: "false", subject: "s", secret: "hidden", amount: 1 });
  expect(named(masked.more, "to")).toMatchObject({ text: "false", remarks: ["a text"] });
  expect(named(masked.more, "secret").remarks).toBeUndefined();
});

it("spells out words whose letters or digits pass for others", async () => {
  verifies("beyond.card.lookalikes");
  const mixed = {
    a: "р\u0430ypal.com",
    b: "1\u041e0",
    c: "1\uff100",
    d: "1\u06600",
    e: "сосо.com",
    f: { deep: ["x \ud835\udc1axe"] },
  };
  const plain = {
    g: "привет",
    h: "отчёт 2 pages",
    i: "Ω 5",
    j: "１２３",
    k: "café",
    l: "東京Tシャツ 10²",
    m: "сосо",
  };
  const { more, text } = await cardOf("plain.call", { ...mixed, ...plain });
  for (const name of Object.keys(mixed))
    expect(named(more, `"${name}"`).remarks?.at(-1), name).toMatch(
      /^mixes letters that look alike: ".*spelled/,
    );
  for (const name of Object.keys(plain)) expect(named(more, `"${name}"`).remarks, name).toBeUndefined();
  expect(text).toContain("(spelled \\u{440}\\u{430}ypal.com)");
  const mail = await cardOf("mail.send", { to: "р\u0430ypal.com", subject: "s" });
  expect(named(mail.more, "to").remarks).toHaveLength(1);
});

it("spells out marks that would cover other lines", async () => {
  verifies("beyond.card.inert");
  const { more, sentence } = await cardOf("mail.send", {
    to: `a${"\u0301".repeat(9)}b`,
    subject: "s",
    n: "e\u0301",
  });
  expect(sentence).toBe(`Mail a${"\u0301".repeat(4)}${"\\u0301".repeat(5)}b: s`);
  expect(named(more, '"n"').text).toBe("e\u0301");
});

it("marks every space that is not the plain one", async () => {
  verifies("beyond.card.spaces");
  const spaces = ["00a0", "1680", "2000", "2003", "2009", "200a", "202f", "205f", "3000"];
  const to = spaces.map((code) => `a${String.fromCodePoint(Number.parseInt(code, 16))}b`).join(" ");
  const { sentence, text } = await cardOf("mail.send", { to, subject: "s" });
  const shown = spaces.map((code) => `a\\u${code}b`).join(" ");
  expect(sentence).toBe(`Mail ${shown}: s`);
  expect(text).toContain(shown);
});

it("covers all of the judged card with its hash", async () => {
  verifies("beyond.card.hash-whole");
  const { hashingCardContent, buildingCardContent } = await import("../../src/govern/cards/card.ts");
  const { cardSubject, gatheringCardFacts } = await import("../../src/govern/cards/load-card-facts.ts");
  const { approval_id } = await cardOf("mail.send", { to: "a", amount: 1, extra: "x".repeat(200) });
  const approval = (await s.app.core.store.get("approvals", approval_id))!;
  const values = await s.app.core.store.get("approval_values", approval_id);
  const run = (await s.app.core.store.get("runs", approval.run_id))!;
  const facts = runAtOnce(gatheringCardFacts(cardSubject(s.app.core.rules(), run, approval), values));
  const card = runAtOnce(buildingCardContent(facts));
  const hashOf = (shown: typeof card): string => runAtOnce(hashingCardContent(facts, shown));
  const hash = hashOf(card);
  for (const name of Object.keys(card)) expect(hashOf({ ...card, [name]: "changed" }), name).not.toBe(hash);
  const more = card.more.map((field) => ({ ...field, remarks: [] }));
  expect(hashOf({ ...card, more })).not.toBe(hash);
});
