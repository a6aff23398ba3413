/**
 * Recognizes `psql` calls that only read: one plain `select` with functions that have no side effects. Everything that
 * is not on these lists needs approval.
 */

const words = (list: string): ReadonlySet<string> => new Set(list.trim().split(/\s+/));

const FUNCTIONS = words(`
  count sum avg min max array_agg string_agg json_agg jsonb_agg json_object_agg bool_and bool_or every stddev variance
  percentile_cont percentile_disc mode row_number rank dense_rank ntile lag lead first_value last_value nth_value
  coalesce nullif greatest least abs ceil ceiling floor round trunc sign mod power sqrt exp ln log random width_bucket
  lower upper initcap length char_length octet_length bit_length trim btrim ltrim rtrim lpad rpad left right substr
  substring position strpos replace translate reverse split_part concat concat_ws format repeat starts_with md5
  regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table ascii chr
  now date date_trunc date_part extract age to_char to_date to_timestamp to_number make_date make_interval
  clock_timestamp statement_timestamp timeofday justify_days justify_hours current_date current_timestamp
  array_length cardinality array_to_string string_to_array unnest array_position array_append array_cat any all some
  json_build_object jsonb_build_object json_build_array jsonb_build_array json_array_length jsonb_array_length
  json_array_elements jsonb_array_elements json_array_elements_text jsonb_array_elements_text json_each jsonb_each
  json_object_keys jsonb_object_keys jsonb_pretty to_json to_jsonb row_to_json json_typeof jsonb_typeof
  generate_series version current_database current_schema current_user pg_size_pretty pg_total_relation_size
  pg_relation_size pg_table_size pg_indexes_size pg_database_size pg_column_size pg_get_indexdef pg_get_constraintdef
  pg_typeof obj_description col_description format_type
  grouping cast interval numeric decimal varchar char timestamp timestamptz time bit row array`);

/** Words before a bracket that are not functions. */
const KEYWORDS = words(`
  in and or not exists select from where on over filter as by having join using union except intersect case when then
  else between like ilike is distinct lateral within group limit offset values with`);

const CHANGES =
  /\b(?:insert|update|delete|merge|create|alter|drop|truncate|copy|call|do|execute|prepare|into|grant|revoke|set|reset|lock|vacuum|analyze|refresh|listen|notify|load|import|security|for)\b/;
/** Catalogs with passwords and connection settings. */
const SECRETS =
  /\bpg_(?:authid|shadow|user_mapping\w*|subscription\w*|foreign_server|hba_file_rules|stat_activity)\b|dblink/;

/** Whether the text is a single `select` that reads. */
export function isPlainSelect(sql: string): boolean {
  // Backslashes, backticks, colons before a name, dollar quotes and comments have their own meaning for psql.
  if (/[\\`$]|--|\/\*|(?<!:):(?![:\d])|\b[eun]&?'/i.test(sql)) return false;
  const bare = sql
    .replace(/'(?:[^']|'')*'/g, "''")
    .trim()
    .replace(/;\s*$/, "");
  if (/[;"]/.test(bare) || /'(?!')/.test(bare.replaceAll("''", ""))) return false;
  const text = bare.toLowerCase();
  if (!/^select\b/.test(text) || CHANGES.test(text) || SECRETS.test(text)) return false;
  return [...text.matchAll(/(?<![\w.])([\w.]+)\s*\(/g)].every(
    ([, name]) => FUNCTIONS.has(name!) || KEYWORDS.has(name!),
  );
}

const FLAGS =
  /^(?:-[AXtqxw]+|--(?:no-psqlrc|tuples-only|no-align|quiet|expanded|csv|no-password)|-P|--pset)$/;
const PSET =
  /^(?:pager=off|format=(?:aligned|unaligned|csv|wrapped)|null=\w+|border=[0-2]|footer=off|tuples_only)$/;
const DATABASE = /^[A-Za-z_][\w-]*$/;

/** Whether the words of `psql` name nothing but a database on this machine and one plain `select`. */
export function isReadingPsql(texts: readonly string[]): boolean {
  let selects = 0;
  let databases = 0;
  for (let at = 0; at < texts.length; at++) {
    const text = texts[at]!;
    if (/^-[AXtqxw]*c$/.test(text) || text === "--command") {
      selects++;
      if (!isPlainSelect(texts[++at] ?? "")) return false;
    } else if (text.startsWith("--command=")) {
      selects++;
      if (!isPlainSelect(text.slice("--command=".length))) return false;
    } else if (text === "-d" || text === "--dbname") {
      databases++;
      if (!DATABASE.test(texts[++at] ?? "")) return false;
    } else if (text.startsWith("--dbname=")) {
      databases++;
      if (!DATABASE.test(text.slice("--dbname=".length))) return false;
    } else if (text === "-P" || text === "--pset") {
      if (!PSET.test(texts[++at] ?? "")) return false;
    } else if (text === "-F" && /^[,;|\t]$/.test(texts[at + 1] ?? "")) at++;
    else if (FLAGS.test(text)) continue;
    else if (DATABASE.test(text)) databases++;
    else return false;
  }
  return selects === 1 && databases <= 1;
}
