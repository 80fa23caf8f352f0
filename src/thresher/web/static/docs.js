// The HTTP interface, made from /openapi.json.
import { at, breakable, fetched, make, set } from "./tools.js";

const spec = await fetched("/openapi.json");
set("lead", spec.info.description);

const resolved = (schema) => (schema?.$ref ? spec.components.schemas[schema.$ref.split("/").at(-1)] : schema);

function kind(schema) {
  if (!schema) return "";
  if (schema.$ref) return resolved(schema).title;
  if (schema.anyOf) return [...new Set(schema.anyOf.map(kind))].join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const) return JSON.stringify(schema.const);
  if (schema.type === "array") return schema.prefixItems ? `(${schema.prefixItems.map(kind).join(", ")})` : `list of ${kind(schema.items)}`;
  return schema.type ?? "anything";
}

function fields(schema) {
  const needed = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => make("tr", {},
    make("td", { class: "words" }, make("code", {}, ...breakable(name))),
    make("td", { class: "words" }, kind(field), ...(field.description ? [make("p", { class: "note" }, field.description)] : [])),
    make("td", { class: "words" }, needed.has(name) ? "needed" : `default ${JSON.stringify(field.default ?? null)}`)));
  return rows.length ? [make("div", { class: "scroll" }, make("table", {}, make("tbody", {}, ...rows)))] : [];
}

for (const [path, methods] of Object.entries(spec.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const parts = [make("summary", {}, make("span", { class: "method" }, method.toUpperCase()), make("code", {}, path), make("span", { class: "gist" }, (operation.description ?? "").split(/[.:;] |[.]$/)[0])), make("p", { class: "note" }, operation.description ?? "")];
    for (const parameter of (operation.parameters ?? []).filter((parameter) => parameter.in !== "path"))
      parts.push(make("p", { class: "note" }, make("code", {}, parameter.name), ` (${parameter.in}): ${kind(parameter.schema)}`));
    let body = operation.requestBody?.content["application/json"].schema;
    body = body?.anyOf ? body.anyOf[0] : body;
    if (body) parts.push(make("h2", {}, "Body"), ...fields(resolved(body)));
    const replies = Object.entries(operation.responses).filter(([status]) => status < 300);
    for (const [status, reply] of replies) {
      const schema = reply.content?.["application/json"]?.schema;
      if (schema?.$ref) parts.push(make("h2", {}, `Reply ${status}`), ...fields(resolved(schema)));
    }
    at("operations").append(make("details", {}, ...parts));
  }
}
