// generate <openapi.json>: writes src/generated from the description, the types and the table of operations. What it writes is not
// kept in the tree, so that it cannot be out of date.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const source = process.argv[2];
if (!source) throw new Error("usage: node generate.mjs <openapi.json>");
const description = JSON.parse(readFileSync(source, "utf8"));
const methods = ["get", "post", "put", "patch", "delete"];
const operations = {};
const codes = new Set();

for (const [path, item] of Object.entries(description.paths)) {
  for (const method of methods) {
    const operation = item[method];
    if (!operation) continue;
    operations[operation.operationId] = [method.toUpperCase(), path];
    for (const [status, response] of Object.entries(operation.responses)) {
      for (const code of response["x-codes"] ?? []) codes.add(code);
      if (!status.startsWith("2")) delete operation.responses[status]; // refusals have one type, SoniqError
    }
  }
}
without(description);
delete description.components.examples;

// without takes the examples away: they are three quarters of the types.
function without(node) {
  if (node === null || typeof node !== "object") return;
  if ("example" in node && ("schema" in node || "in" in node)) delete node.example;
  if ("examples" in node && ("schema" in node || "type" in node)) delete node.examples;
  for (const value of Object.values(node)) without(value);
}

mkdirSync("src/generated", { recursive: true });
const types = await openapiTS(description, { defaultNonNullable: false });
writeFileSync("src/generated/schema.ts", astToString(types));
writeFileSync("src/generated/operations.ts",
  `/** Method and path of every operation. */\nexport const routes = ${JSON.stringify(operations, null, 2)} as const;\n` +
  `/** A code of a refusal; see /errors/{code}. */\nexport type ErrorCode = ${[...codes].sort().map((c) => JSON.stringify(c)).join(" | ")};\n`);
