// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is what is tested here

import { describe, expect, test } from "vitest";
import { load, problems } from "../../test/support/settings.ts";
import { verifies } from "../../test/support/verifies.ts";

describe("${NAME}", () => {
  test("is replaced in texts, lists and mappings, and may stand for a number or a switch", () => {
    verifies("contract.config.expansion");
    const yaml =
      "listen: {port: '${P}'}\ncapture: {enabled: '${ON}', ttl: '${TTL}'}\nenvironment: 'x-${E}-$${E}'\nupstreams: [{name: a, command: c, args: ['${E}'], env: {K: '${E}'}}]\n";
    const { settings } = load(yaml, { env: { P: "81", ON: "1", E: "prod", TTL: "36h" } });
    expect(settings).toMatchObject({
      listen: { port: 81 },
      capture: { enabled: true, ttl_ms: 36 * 3_600_000 },
      environment: "x-prod-${E}",
      upstreams: [{ args: ["prod"], env: { K: "prod" } }],
    });
  });

  test("a variable that is not set is a problem that names the key, the line and the variable", () => {
    verifies("contract.config.expansion-missing");
    expect(problems("store: files\nchat:\n  signing_secret: ${NOPE}\n")).toEqual([
      "svc.config.yaml:3:19: chat.signing_secret: the environment variable NOPE is not set",
    ]);
    expect(problems("environment: ${toString}")[0]).toMatch(/toString is not set/);
  });

  test.each(["${", "${}", "${a-b}", "a ${NAME", "${NAME:-x}"])("%s is refused", (text) => {
    expect(problems(`environment: '${text}'`)[0]).toMatch(/holds a \$\{ that is not \$\{NAME\}/);
  });

  test("what a variable holds is not replaced again, and is judged like any value", () => {
    expect(load("environment: '${A}'", { env: { A: "${B}" } }).settings.environment).toBe("${B}");
    expect(problems("listen: {port: '${A}'}", { env: { A: "http" } })[0]).toMatch(
      /listen\.port: must be a number/,
    );
  });
});
