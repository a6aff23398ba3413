/** What each tool of the S3 pack is drilled with. The emulator keeps no versions, and does not check signatures. */
import type { Direct, PackDrill } from "../drill.ts";

async function bucket(direct: Direct, name: string): Promise<string> {
  await direct("PUT", `/${name}`);
  return name;
}

export const s3: PackDrill = {
  pack: "s3",
  service: "aws",
  hosts: { "s3.amazonaws.com": "" },
  authorization: "aws_sigv4 AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI-example-secret",
  volatile: [],
  tools: [
    {
      tool: "s3.buckets.create",
      prepare: async () => ({ args: { bucket: "made-by-drill" }, look: ["/", "/made-by-drill"] }),
    },
    {
      tool: "s3.objects.put",
      prepare: async (direct) => {
        const name = await bucket(direct, "drilled");
        return {
          args: { bucket: name, key: "reports/new one.txt" },
          body: "content",
          look: [`/${name}`, `/${name}/reports/new%20one.txt`],
        };
      },
    },
  ],
};
