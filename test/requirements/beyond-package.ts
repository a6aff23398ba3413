/** Statements on the package and on the ways to run it. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondPackage = section("beyond", "Packaging", {
  "beyond.package.install": [22, "the packed tarball installs into an empty project with production packages alone; `takeback` imports, its types hold, `svc` runs"],
  "beyond.package.files": [22, "documents and their pictures are in the package, tests and source maps are not"],
  "beyond.package.engines": [22, "every production package runs on the oldest Node that the package names"],
  "beyond.package.image": [22, "the image is built on a Node that is maintained, runs as a numeric account that is not root with production packages only, and has a health check"],
  "beyond.package.compose": [22, "the compose file is accepted by a linter with the published schema"],
  "beyond.package.kubernetes": [22, "the Kubernetes manifests are accepted by the published schema of each kind"],
  "beyond.package.chart": [22, "the Helm chart names only values that it declares, and its schema accepts what it declares"],
  "beyond.package.scrape": [22, "what the annotations make Prometheus scrape answers without a credential where the configuration says so"],
});
