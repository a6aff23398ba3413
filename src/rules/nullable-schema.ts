/** Schema of a value that can be null. */
import * as z from "zod";

export const nullableSchema = <T extends z.ZodType>(type: T) => z.union([type, z.null()]);
