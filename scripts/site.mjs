/**
 * Makes the documentation site: the pages of the repository and the reference of the library, static, with a search, to be
 * opened from disk. `npm run site` builds first, since the reference is read from the types that the package ships.
 */
import { readFileSync } from "node:fs";
import { register } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { deadLinks } from "./links.mjs";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SITE = join(ROOT, "site");

const PAGES = [
  "docs/**/*.md",
  "{deploy,viewer,sdk/python,examples/*}/README.md",
  "{CHANGELOG,CONTRIBUTING,SECURITY}.md",
];

/** The headings of the sidebar, in its order, with their pages: the first that fits. */
const LIBRARY = "Library";
const GROUPS = {
  Guides: /^(docs\/guides\/[\w-]+\.md|viewer)/,
  Operations: /^(docs\/(operations|scale)|deploy)/,
  "Agent frameworks": /^docs\/guides\/frameworks/,
  Examples: /^examples/,
  Reference: /^(docs\/reference|docs\/http-conventions|sdk)/,
  [LIBRARY]: /^$/,
  "Architecture and internals": /^docs\/(architecture|design|internals)/,
  Decisions: /^docs\/adr/,
  Contributing: /^(docs\/adding|CONTRIBUTING)/,
  About: /^/,
};
const groupOf = (path) => Object.keys(GROUPS).find((name) => GROUPS[name].test(path));

/** What the package lets be imported. */
function entryPoints() {
  const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  return Object.values(exports).flatMap(({ types }) => (types === undefined ? [] : [join(ROOT, types)]));
}

/** TypeDoc reads types through the compiler's JavaScript interface, which TypeScript 7 does not have. */
const WITH_COMPILER = `export const resolve = (name, context, next) =>
  next(name === "typescript" ? "@tsd/typescript" : name, context);`;

/** Writes the site into the directory, and returns its problems. */
async function build(out) {
  register(`data:text/javascript,${encodeURIComponent(WITH_COMPILER)}`);
  const { Application, Comment, CommentTag, Converter, KindRouter } = await import("typedoc");
  const { default: ts } = await import("@tsd/typescript");
  const app = await Application.bootstrap(
    {
      name: "svc",
      readme: join(ROOT, "README.md"),
      entryPoints: entryPoints(),
      projectDocuments: PAGES.map((glob) => join(ROOT, glob)),
      groupOrder: [...Object.keys(GROUPS), "Functions", "Classes"],
      navigation: { includeGroups: true },
      router: "repository",
      customCss: join(ROOT, "scripts/site.css"),
      searchInDocuments: true,
      disableSources: true,
      excludePrivate: true,
      excludeExternals: true,
      skipErrorChecking: true,
      highlightLanguages: ["console", "javascript", "json", "python", "sh", "sql", "typescript", "yaml"],
      // A folder that was named may hold other things.
      cleanOutputDir: out === SITE,
      validation: { notExported: false },
      logLevel: "Warn",
    },
    [],
  );
  const { NodeNext } = ts.ModuleKind;
  app.options.setCompilerOptions(
    entryPoints(),
    { module: NodeNext, strict: true, types: ["node"] },
    undefined,
  );

  /** Pages stand where they stand in the repository, under the title that they bear. */
  const paths = new Map();
  class RepositoryRouter extends KindRouter {
    getIdealBaseName(page) {
      return paths.get(page) ?? super.getIdealBaseName(page);
    }
  }
  app.renderer.defineRouter("repository", RepositoryRouter);
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, page) => {
    paths.set(page, page.name);
    page.frontmatter.group = groupOf(`${page.name}.md`);
    const title = /^# (.*)/.exec(Comment.combineDisplayParts(page.content))?.[1];
    page.name = title?.replaceAll("`", "") ?? page.name;
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    // Its title is above it already.
    project.readme[0].text = project.readme[0].text.replace(/^# .*/, "");
    const group = new CommentTag("@group", [{ kind: "text", text: LIBRARY }]);
    for (const module of project.children) module.comment.blockTags.push(group);
  });
  const project = await app.convert();
  app.validate(project);
  await app.generateDocs(project, out);
  const { warningCount, errorCount } = app.logger;
  return [...(warningCount + errorCount > 0 ? ["see the warnings above"] : []), ...deadLinks(out)];
}

const out = resolve(process.argv[2] ?? SITE);
const problems = await build(out);
for (const problem of problems) console.error(problem);
const verdict = problems.length === 0 ? "ok" : "not as it should be";
console.log(`${relative(process.cwd(), out)}/index.html: ${verdict}`);
process.exitCode = problems.length === 0 ? 0 : 1;
