//! One operation as a tool module: its inputs with a small schema, and one call
//! whose method and path are written out, so that the check reads exactly what
//! the document says. Everything of the document's is quoted as a literal.

use super::operation::{Body, Encoding, Operation, Parameter, Place, Style};
use super::schema::{Detail, Small};
use super::{Drafted, Module, Wanted, example, name, words};
use crate::ToolName;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Longest description a module may have, characters.
const DESCRIPTION_MAX: usize = 300;
/// Marks the description as the vendor's own text, for whoever reads it.
const MARK: &str = "Vendor: ";
/// Longest name of an input; clients refuse more, and other characters.
const INPUT_MAX: usize = 64;
/// Names no input has: reading them off an object is reading its inside, and the
/// check follows no such code.
const RESERVED: [&str; 3] = ["__proto__", "constructor", "prototype"];
/// From much detail to little: the first whose schema fits its size is taken.
const LADDER: [(Detail, usize); 5] = [
    (Detail { depth: 3, describe: 60 }, 240),
    (Detail { depth: 3, describe: 0 }, 500),
    (Detail { depth: 2, describe: 0 }, 600),
    (Detail { depth: 1, describe: 0 }, 6_000),
    (Detail { depth: 0, describe: 0 }, 24_000),
];

/// One input of the tool.
struct Input<'d> {
    /// As the tool's schema calls it.
    name: String,
    /// As the vendor calls it.
    wire: String,
    place: To,
    schema: Value,
    description: Option<&'d str>,
    required: bool,
    example: Option<Value>,
}

/// Where an input goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Path,
    Query(Style),
    Header,
    /// A property of the body.
    Field,
    /// The body itself.
    Whole,
}

/// Writes the module of an operation, or says why there is none.
pub(super) fn draft(
    operation: &Operation<'_>,
    wanted: &Wanted,
    taken: &mut BTreeSet<ToolName>,
) -> Result<Drafted, String> {
    if operation.method == "TRACE" {
        return Err("the proxy never sends TRACE".into());
    }
    let (inputs, constants) = inputs(operation)?;
    let body = operation.body()?;
    let path = path(operation, &wanted.base_path, &inputs)?;
    let (inputs, input_schema) = detailed(operation, inputs, body.as_ref())?;
    let tool = name::name(&wanted.vendor, operation.id(), &operation.key(), taken)?;
    let description = description(operation);
    let example_input = example_of(&inputs, &input_schema);
    let call = call(operation.method, &path, &inputs, &constants, body.as_ref());
    let mut source = String::new();
    let key = words::shortened(&operation.key(), 200);
    let _ = writeln!(source, "// From the vendor's OpenAPI document: {key}");
    let _ = writeln!(source, "export const description = {};", text(&description));
    let _ = writeln!(source, "export const inputSchema = {input_schema:#} as const;");
    if let Some(example) = &example_input {
        let _ = writeln!(source, "export const exampleInput = {example:#};");
    }
    let parameters = if inputs.is_empty() { "ctx: Context" } else { "ctx: Context, input: Input" };
    let _ = write!(
        source,
        "\nexport default async function ({parameters}) {{\n  return ctx.fetch({call});\n}}\n"
    );
    if call.contains("pairs(") {
        source.push_str(PAIRS);
    }
    let module = Module { tool, description, input_schema, example_input, source };
    Ok(Drafted::Module(Box::new(module)))
}

/// How nested values are written in a query or a form.
const PAIRS: &str = "
function pairs(name: string, value: any): [string, string][] {
  if (value === undefined || value === null) return [];
  if (typeof value !== \"object\") return [[name, String(value)]];
  const parts = Array.isArray(value) ? value.entries() : Object.entries(value);
  return [...parts].flatMap(([part, inner]) => pairs(`${name}[${part}]`, inner));
}
";

fn description(operation: &Operation<'_>) -> String {
    let summary = operation.text("summary").map(words::plain).filter(|text| !text.is_empty());
    let account = operation.text("description").map(|text| words::first_sentence(text, 160));
    let said = match (summary, account.filter(|text| !text.is_empty())) {
        (Some(summary), _) => summary,
        (None, Some(account)) => account,
        (None, None) => words::plain(&operation.key()),
    };
    format!("{MARK}{}", words::shortened(&said, DESCRIPTION_MAX))
}

/// The parameters as inputs, and headers that always have the same value.
#[allow(clippy::type_complexity)]
fn inputs<'d>(
    operation: &Operation<'d>,
) -> Result<(Vec<(Parameter<'d>, String)>, Vec<(String, String)>), String> {
    let mut used = BTreeSet::new();
    let (mut inputs, mut constants) = (Vec::new(), Vec::new());
    let mut parameters = operation.parameters()?;
    // A hole nobody described still needs its value.
    for hole in holes(operation.path)? {
        let path = |one: &&Parameter<'_>| one.place == Place::Path && one.name == hole;
        if !parameters.iter().any(|one| path(&one)) {
            parameters.push(Parameter {
                name: hole,
                place: Place::Path,
                required: true,
                description: None,
                schema: &Value::Null,
                example: None,
            });
        }
    }
    let holes = holes(operation.path)?;
    for parameter in parameters {
        if parameter.place == Place::Path && !holes.contains(&parameter.name) {
            continue;
        }
        if parameter.place == Place::Header
            && let Some(value) = constant(operation, &parameter)?
        {
            constants.push((parameter.name.to_owned(), value));
            continue;
        }
        let name = free(parameter.name, parameter.place, &mut used)?;
        inputs.push((parameter, name));
    }
    Ok((inputs, constants))
}

/// A header with a default or a single value is no choice of the agent's.
fn constant(
    operation: &Operation<'_>,
    parameter: &Parameter<'_>,
) -> Result<Option<String>, String> {
    let schema = super::operation::follow(operation.root, parameter.schema)?;
    let only = schema["enum"].as_array().filter(|values| values.len() == 1);
    let value = schema.get("default").or_else(|| only.and_then(|values| values.first()));
    Ok(value.and_then(Value::as_str).map(str::to_owned))
}

/// A name clients take, not used yet in this tool.
fn free(wire: &str, place: Place, used: &mut BTreeSet<String>) -> Result<String, String> {
    let plain: String = wire
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' })
        .take(INPUT_MAX)
        .collect();
    let trimmed = plain.trim_end_matches('_');
    let plain = if trimmed.is_empty() || wire.ends_with('_') { &plain } else { trimmed };
    let place = match place {
        Place::Path => "path",
        Place::Query(_) => "query",
        Place::Header => "header",
    };
    let other = format!("{}_{place}", &plain[..plain.len().min(INPUT_MAX - 8)]);
    for name in [plain.to_owned(), other] {
        if !RESERVED.contains(&name.as_str()) && used.insert(name.clone()) {
            return Ok(name);
        }
    }
    Err(format!("two of its parameters are both called `{}`", words::shortened(wire, 40)))
}

/// The names in braces, in order.
fn holes(path: &str) -> Result<Vec<&str>, String> {
    let mut holes = Vec::new();
    let mut rest = path;
    while let Some(start) = rest.find('{') {
        let end = rest[start..].find('}').ok_or("a brace in its path is not closed")?;
        holes.push(&rest[start + 1..start + end]);
        rest = &rest[start + end + 1..];
    }
    Ok(holes)
}

/// The path as a template literal.
fn path(
    operation: &Operation<'_>,
    base: &str,
    inputs: &[(Parameter<'_>, String)],
) -> Result<String, String> {
    let mut out = format!("`{base}");
    let mut rest = operation.path;
    while let Some(start) = rest.find('{') {
        let end = rest[start..].find('}').map_or(rest.len(), |end| start + end);
        template(&rest[..start], &mut out)?;
        let hole = &rest[start + 1..end];
        let of = |(parameter, _): &&(Parameter<'_>, String)| {
            parameter.place == Place::Path && parameter.name == hole
        };
        let (_, name) = inputs.iter().find(of).ok_or("a brace in its path names nothing")?;
        let _ = write!(out, "${{encodeURIComponent({})}}", member(name));
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    template(rest, &mut out)?;
    out.push('`');
    Ok(out)
}

fn template(text: &str, out: &mut String) -> Result<(), String> {
    for c in text.chars() {
        match c {
            '`' | '\\' | '$' => out.extend(['\\', c]),
            c if c.is_control() => return Err("its path holds a control character".into()),
            c => out.push(c),
        }
    }
    Ok(())
}

/// The inputs with as much detail as fits, and the schema they make.
fn detailed<'d>(
    operation: &Operation<'d>,
    parameters: Vec<(Parameter<'d>, String)>,
    body: Option<&Body<'d>>,
) -> Result<(Vec<Input<'d>>, Value), String> {
    for (detail, most) in LADDER {
        let mut small = Small::new(operation.root, detail);
        let mut inputs = Vec::new();
        for (parameter, name) in &parameters {
            inputs.push(of_parameter(parameter, name, &mut small)?);
        }
        if let Some(body) = body {
            of_body(body, &mut small, &mut inputs)?;
        }
        let schema = schema_of(&inputs, detail);
        if schema.to_string().len() <= most {
            return Ok((inputs, schema));
        }
    }
    Err("its input is too large for a tool".into())
}

fn of_parameter<'d>(
    parameter: &Parameter<'d>,
    name: &str,
    small: &mut Small<'_>,
) -> Result<Input<'d>, String> {
    let mut schema = small.schema(parameter.schema)?;
    if parameter.place == Place::Path
        && let Some(words) = schema.as_object_mut()
        && !words.contains_key("enum")
        && !words.get("type").is_some_and(|kind| kind == "integer" || kind == "number")
    {
        // Whatever it is, it is one piece of a path.
        words.insert("type".into(), "string".into());
        words.retain(|word, _| matches!(word.as_str(), "type" | "format" | "description"));
    }
    Ok(Input {
        name: name.to_owned(),
        wire: parameter.name.to_owned(),
        place: match parameter.place {
            Place::Path => To::Path,
            Place::Query(style) => To::Query(style),
            Place::Header => To::Header,
        },
        example: Some(example::value(&schema, parameter.example)),
        schema,
        // What a piece of a path is, its name and the path say.
        description: parameter.description.filter(|_| parameter.place != Place::Path),
        required: parameter.required,
    })
}

fn of_body<'d>(
    body: &Body<'d>,
    small: &mut Small<'_>,
    inputs: &mut Vec<Input<'d>>,
) -> Result<(), String> {
    let fields = match body.encoding {
        Encoding::Text(_) => None,
        Encoding::Json(_) | Encoding::Form => small.object(body.schema)?,
    };
    let given = |name: &str| body.example.and_then(|example| example.get(name));
    let taken = |name: &str| inputs.iter().any(|input| input.name == name);
    let fits = |name: &String| {
        name.len() <= INPUT_MAX
            && !name.is_empty()
            && !RESERVED.contains(&name.as_str())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    if let Some(parts) = fields.filter(|parts| {
        (!parts.properties.is_empty() || !body.required)
            && parts.properties.keys().all(|name| fits(name) && !taken(name))
    }) {
        for (name, value) in &parts.properties {
            if value["readOnly"] == true {
                continue;
            }
            let schema = small.schema(value)?;
            inputs.push(Input {
                name: name.clone(),
                wire: name.clone(),
                place: To::Field,
                example: Some(example::value(
                    &schema,
                    given(name).or_else(|| value.get("example")),
                )),
                schema,
                description: None,
                // Also of a body that may be left out: it is always sent.
                required: parts.required.contains(name),
            });
        }
        return Ok(());
    }
    let mut schema = match body.encoding {
        Encoding::Text(_) => json!({ "type": "string" }),
        Encoding::Json(_) | Encoding::Form => small.schema(body.schema)?,
    };
    if body.encoding == Encoding::Form && schema["type"] != "object" {
        schema = json!({ "type": "object" });
    }
    let name = if taken("body") { "body_whole" } else { "body" };
    if taken(name) {
        return Err("no name is free for its body".into());
    }
    inputs.push(Input {
        name: name.to_owned(),
        wire: String::new(),
        place: To::Whole,
        example: Some(example::value(&schema, body.example)),
        schema,
        description: None,
        required: body.required,
    });
    Ok(())
}

fn schema_of(inputs: &[Input<'_>], detail: Detail) -> Value {
    let mut properties = Map::new();
    for input in inputs {
        let mut schema = input.schema.clone();
        if let (Some(words), Some(text)) = (schema.as_object_mut(), input.description)
            && detail.describe > 0
        {
            let text = words::first_sentence(text, detail.describe);
            if !text.is_empty() {
                words.insert("description".into(), text.into());
            }
        }
        properties.insert(input.name.clone(), schema);
    }
    let required: Vec<&str> =
        inputs.iter().filter(|input| input.required).map(|input| input.name.as_str()).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = false.into();
    schema
}

/// The required inputs with a value each; `None` when they do not fit together.
fn example_of(inputs: &[Input<'_>], schema: &Value) -> Option<Value> {
    let required = inputs.iter().filter(|input| input.required);
    let example: Map<String, Value> =
        required.filter_map(|input| Some((input.name.clone(), input.example.clone()?))).collect();
    let example = Value::Object(example);
    let plain = crate::check::normalise_schema(schema).ok()?;
    let fits = crate::check::schema_validator(&plain).ok()?.is_valid(&example);
    (fits && crate::canonical::settled(&example).is_some()).then_some(example)
}

/// The arguments of `ctx.fetch`.
fn call(
    method: &str,
    path: &str,
    inputs: &[Input<'_>],
    constants: &[(String, String)],
    body: Option<&Body<'_>>,
) -> String {
    let mut parts = Vec::new();
    if method != "GET" {
        parts.push(format!("method: {}", text(method)));
    }
    parts.extend(query(inputs));
    let (content, sent) = match body {
        Some(body) => sent(body, inputs),
        None => (None, None),
    };
    parts.extend(headers(inputs, constants, content));
    parts.extend(sent.map(|sent| format!("body: {sent}")));
    if parts.is_empty() {
        return path.to_owned();
    }
    format!("{path}, {{\n    {},\n  }}", parts.join(",\n    "))
}

fn query(inputs: &[Input<'_>]) -> Option<String> {
    let of = |input: &&Input<'_>| matches!(input.place, To::Query(_));
    let queries: Vec<&Input<'_>> = inputs.iter().filter(of).collect();
    if queries.is_empty() {
        return None;
    }
    let deep = |input: &Input<'_>| {
        input.place == To::Query(Style::Deep)
            || super::schema::names_type(&input.schema["type"], "object")
            || input.schema.get("anyOf").is_some()
    };
    if queries.iter().any(|input| deep(input)) {
        let pairs: Vec<String> = queries
            .iter()
            .map(|input| format!("...pairs({}, {})", text(&input.wire), valued(input)))
            .collect();
        return Some(format!(
            "query: new URLSearchParams([\n      {},\n    ])",
            pairs.join(",\n      ")
        ));
    }
    let entries: Vec<String> = queries
        .iter()
        .map(|input| format!("{}: {}", property(&input.wire), valued(input)))
        .collect();
    Some(format!("query: {{ {} }}", entries.join(", ")))
}

/// An input's value; a list that goes as one text is joined.
fn valued(input: &Input<'_>) -> String {
    let member = member(&input.name);
    match input.place {
        To::Query(Style::Joined(with))
            if super::schema::names_type(&input.schema["type"], "array") =>
        {
            format!("{member}?.join({})", text(&with.to_string()))
        }
        _ => member,
    }
}

fn headers(
    inputs: &[Input<'_>],
    constants: &[(String, String)],
    content: Option<&str>,
) -> Option<String> {
    let mut entries: Vec<String> = constants
        .iter()
        .map(|(name, value)| format!("{}: {}", property(name), text(value)))
        .collect();
    if let Some(content) = content {
        entries.push(format!("\"content-type\": {}", text(content)));
    }
    for input in inputs.iter().filter(|input| input.place == To::Header) {
        let (name, member) = (property(&input.wire), member(&input.name));
        entries.push(match input.required {
            true => format!("{name}: String({member})"),
            false => format!("...({member} === undefined ? {{}} : {{ {name}: String({member}) }})"),
        });
    }
    (!entries.is_empty()).then(|| format!("headers: {{ {} }}", entries.join(", ")))
}

/// The body's type where it must be said, and the body.
fn sent<'b>(body: &Body<'b>, inputs: &[Input<'_>]) -> (Option<&'b str>, Option<String>) {
    let whole = inputs.iter().find(|input| input.place == To::Whole);
    let fields: Vec<&Input<'_>> = inputs.iter().filter(|i| i.place == To::Field).collect();
    let listed = |fields: &[&Input<'_>]| {
        let entries: Vec<String> = fields
            .iter()
            .map(|input| format!("{}: {}", property(&input.wire), member(&input.name)))
            .collect();
        format!("{{\n      {},\n    }}", entries.join(",\n      "))
    };
    match (body.encoding, whole) {
        (Encoding::Text(kind), Some(whole)) => (Some(kind), Some(member(&whole.name))),
        (Encoding::Json(kind), Some(whole)) => {
            (Some(kind), Some(format!("JSON.stringify({})", member(&whole.name))))
        }
        (Encoding::Form, Some(whole)) => (
            None,
            Some(format!(
                "new URLSearchParams(Object.entries({} ?? {{}}).flatMap(([name, value]) => \
                 pairs(name, value)))",
                member(&whole.name)
            )),
        ),
        (Encoding::Text(_), None) => (None, None),
        (Encoding::Json(_) | Encoding::Form, None) if fields.is_empty() => (None, None),
        (Encoding::Json(kind), None) => {
            (Some(kind).filter(|kind| *kind != "application/json"), Some(listed(&fields)))
        }
        (Encoding::Form, None) => {
            let pairs: Vec<String> = fields
                .iter()
                .map(|input| format!("...pairs({}, {})", text(&input.wire), member(&input.name)))
                .collect();
            let pairs = pairs.join(",\n      ");
            (None, Some(format!("new URLSearchParams([\n      {pairs},\n    ])")))
        }
    }
}

/// `input.owner`, or `input["page[size]"]`.
fn member(name: &str) -> String {
    match is_identifier(name) {
        true => format!("input.{name}"),
        false => format!("input[{}]", text(name)),
    }
}

/// A property's name in an object literal. Written as a word, `__proto__` would
/// set the prototype; in brackets it is a name like any other.
fn property(name: &str) -> String {
    match name {
        "__proto__" => "[\"__proto__\"]".to_owned(),
        name if is_identifier(name) => name.to_owned(),
        name => text(name),
    }
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'$')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
}

/// A string literal. JSON's form of a string is JavaScript's.
fn text(value: &str) -> String {
    Value::from(value).to_string()
}
