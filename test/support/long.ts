/** The bounded sizes of tests in `npm test`, and their long ones: `npm run prove -- long` sets `SVC_PROVE_LONG`. */
export function sized<T>(bounded: T, long: T): T {
  return process.env["SVC_PROVE_LONG"] === undefined ? bounded : long;
}
