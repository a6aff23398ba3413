/** The same clock in every process of the machine. */
export const clock = (): number => Number(process.hrtime.bigint()) / 1e6;
