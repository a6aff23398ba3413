export async function main(_: string[]): Promise<number> {
  return 1;
}
