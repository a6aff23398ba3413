/** Where the description of each service's API is published, and in what form. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type DescriptionForm = "openapi" | "discovery" | "smithy";

export interface DescriptionSource {
  /** `owner/name` of a public git repository, or the name of an npm package that begins with @. */
  readonly from: string;
  readonly form: DescriptionForm;
  readonly files: readonly string[];
  /** Tools that the service has, but its description lacks. */
  readonly undescribed?: readonly string[];
}

const google = (file: string): DescriptionSource => ({
  from: "googleapis/discovery-artifact-manager",
  form: "discovery",
  files: [`discoveries/${file}`],
});

export const DESCRIPTION_SOURCES: Readonly<Record<string, DescriptionSource>> = {
  calendar: google("calendar.v3.json"),
  drive: google("drive.v3.json"),
  gmail: google("gmail.v1.json"),
  github: {
    from: "@octokit/openapi",
    form: "openapi",
    files: ["generated/api.github.com.json"],
  },
  s3: { from: "aws/api-models-aws", form: "smithy", files: ["s3/service/2006-03-01/s3-2006-03-01.json"] },
  slack: {
    from: "slackapi/slack-api-specs",
    form: "openapi",
    files: ["web-api/slack_web_openapi_v2_without_examples.json"],
    undescribed: ["slack.bookmarks.list", "slack.bookmarks.add", "slack.bookmarks.remove"],
  },
  stripe: {
    from: "APIs-guru/openapi-directory",
    form: "openapi",
    files: ["APIs/stripe.com/2022-11-15/openapi.yaml"],
  },
  twilio: {
    from: "twilio/twilio-oai",
    form: "openapi",
    files: ["api_v2010", "messaging_v1", "verify_v2"].map((name) => `spec/json/twilio_${name}.json`),
  },
};

/** A description in `folder`: a git repository at `<owner>/<name>`, which can be bare, or an installed npm package. */
export class PublishedDescription {
  private readonly folder: string;
  private readonly isPackage: boolean;

  constructor(folder: string, { from }: DescriptionSource) {
    this.isPackage = from.startsWith("@");
    this.folder = this.isPackage ? join(folder, "node_modules", from) : join(folder, from);
    if (!existsSync(this.folder))
      throw new Error(this.isPackage ? `install ${from} in ${folder}` : `clone ${from} to ${this.folder}`);
  }

  /** Commit of a repository, version of a package. */
  get version(): string {
    if (!this.isPackage) return this.git("rev-parse", "HEAD").trim();
    return (JSON.parse(this.read("package.json")) as { version: string }).version;
  }

  get date(): string {
    if (!this.isPackage) return this.git("log", "-1", "--format=%cs").trim();
    const { name, version } = JSON.parse(this.read("package.json")) as { name: string; version: string };
    const times = execFileSync("npm", ["view", name, "time", "--json"], { encoding: "utf8" });
    return (JSON.parse(times) as Record<string, string>)[version]!.slice(0, "2000-01-01".length);
  }

  read(file: string): string {
    return this.isPackage ? readFileSync(join(this.folder, file), "utf8") : this.git("show", `HEAD:${file}`);
  }

  private git(...args: string[]): string {
    return execFileSync("git", ["-C", this.folder, ...args], { encoding: "utf8", maxBuffer: 2 ** 28 });
  }
}
