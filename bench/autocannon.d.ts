/** The little of autocannon that the benchmarks use; the package ships no types. */
declare module "autocannon" {
  namespace autocannon {
    interface Request {
      path: string;
    }
    interface Options {
      url: string;
      method: string;
      headers: Record<string, string>;
      body?: string;
      connections: number;
      /** Seconds; without effect where there is an amount. */
      duration?: number;
      /** How many requests in all. */
      amount?: number;
      /** Milliseconds between samples. */
      sampleInt?: number;
      requests?: { body: string; setupRequest(request: Request): Request }[];
    }
    interface Result {
      "2xx": number;
      requests: { average: number };
      non2xx: number;
      errors: number;
    }
  }
  function autocannon(options: autocannon.Options): Promise<autocannon.Result>;
  export default autocannon;
}
