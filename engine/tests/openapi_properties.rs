//! Documents nobody should have written: whatever the bytes, reading them ends
//! with a sentence or with modules, and a module that is made passes the check
//! with its one call where the document says.
#![allow(clippy::unwrap_used)]

use cambium_engine::{Drafted, Wanted, check_module, draft_bytes, draft_document, draft_input};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn wanted() -> Wanted {
    Wanted { vendor: "shop".into(), base_path: String::new(), operations: Vec::new() }
}

/// Reads it and checks what came of it; the modules and the reasons.
fn read(document: &[u8]) -> (Vec<String>, Vec<String>) {
    let Ok(drafts) = draft_document(document, &wanted()) else { return Default::default() };
    let (mut modules, mut reasons) = (Vec::new(), Vec::new());
    for draft in drafts.drafts {
        match draft.outcome {
            Drafted::Module(module) => {
                let source = module.source;
                let report = check_module(&source);
                // The check has the last word; but it never reads another method. One it
                // cannot follow is not imported.
                for site in report.sites.iter().filter(|_| report.ok) {
                    let method = serde_json::to_value(&site.method).unwrap();
                    let followed = method == json!({ "exactly": draft.method });
                    assert!(followed || method == "any", "{method} {source}");
                }
                assert!(report.sites.len() <= 1, "{source}");
                modules.push(source);
            }
            Drafted::Refused(reason) => reasons.push(reason),
        }
    }
    (modules, reasons)
}

/// Words that mean something in a document, and some that mean mischief.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "type",
            "object",
            "string",
            "array",
            "items",
            "properties",
            "required",
            "$ref",
            "#/components/schemas/a",
            "#/components/schemas/b",
            "#/",
            "#",
            "http://x.example/y#/z",
            "allOf",
            "oneOf",
            "anyOf",
            "enum",
            "const",
            "nullable",
            "additionalProperties",
            "description",
            "schema",
            "content",
            "application/json",
            "application/x-www-form-urlencoded",
            "text/plain",
            "in",
            "query",
            "path",
            "header",
            "cookie",
            "name",
            "style",
            "deepObject",
            "explode",
            "parameters",
            "requestBody",
            "operationId",
            "__proto__",
            "constructor",
            "a`${ctx}`b",
            "*/ ctx.fetch('/x')",
            "\u{202e}",
            "\n// x",
            "page[size]",
            "",
            "v",
            "default",
            "readOnly",
            "summary",
        ])
        .prop_map(str::to_owned),
        ".{0,12}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn operation() -> impl Strategy<Value = Value> {
    let parameter = (word(), prop::sample::select(vec!["query", "path", "header"]), value())
        .prop_map(|(name, place, schema)| json!({ "name": name, "in": place, "schema": schema }));
    (
        prop::collection::vec(prop_oneof![parameter, value()], 0..4),
        value(),
        prop::option::of(word()),
        word(),
        any::<bool>(),
    )
        .prop_map(|(parameters, schema, id, summary, required)| {
            let mut operation = json!({
                "parameters": parameters,
                "summary": summary,
                "requestBody": {
                    "required": required,
                    "content": { "application/json": { "schema": schema } },
                },
            });
            if let Some(id) = id {
                operation["operationId"] = id.into();
            }
            operation
        })
}

fn document() -> impl Strategy<Value = Value> {
    let method = prop::sample::select(vec!["get", "post", "put", "delete", "patch", "head"]);
    let path = prop_oneof![
        Just("/orders/{id}".to_owned()),
        Just("/{a}/{b}/{a}".to_owned()),
        word().prop_map(|word| format!("/{word}")),
        "(/[a-z{}$`\\\\]{0,6}){1,3}",
    ];
    let item = prop::collection::vec((method, operation()), 1..3)
        .prop_map(|all| Value::Object(all.into_iter().map(|(m, o)| (m.to_owned(), o)).collect()));
    (prop::collection::vec((path, item), 1..4), value(), value()).prop_map(|(paths, a, b)| {
        json!({
            "openapi": "3.1.0",
            "info": { "title": "Shop" },
            "paths": Value::Object(paths.into_iter().collect()),
            "components": { "schemas": { "a": a, "b": b } },
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_of_odd_parts_ends_in_modules_or_reasons(document in document()) {
        read(document.to_string().as_bytes());
    }

    #[test]
    fn any_json_and_any_yaml_end(value in value(), text in ".{0,200}") {
        read(value.to_string().as_bytes());
        read(text.as_bytes());
        read(format!("openapi: 3.0.0\npaths:\n  /x:\n    get:\n{text}").as_bytes());
    }

    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read(&bytes);
        let answer = draft_bytes(&bytes);
        prop_assert!(serde_json::from_slice::<Value>(&answer).is_ok());
    }
}

#[test]
fn a_sound_document_cut_or_changed_anywhere_ends() {
    let whole = json!({
        "openapi": "3.0.3",
        "info": { "title": "Shop", "version": "1" },
        "paths": { "/orders/{id}": { "post": {
            "operationId": "changeOrder",
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } }],
            "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/o" } } } },
        } } },
        "components": { "schemas": { "o": { "type": "object", "properties": { "n": { "$ref": "#/components/schemas/o" } } } } },
    })
    .to_string();
    assert_eq!(read(whole.as_bytes()).0.len(), 1);
    for at in 0..whole.len() {
        read(&whole.as_bytes()[..at]);
        let mut changed = whole.clone().into_bytes();
        changed[at] = b'"';
        read(&changed);
        changed[at] = b'{';
        read(&changed);
    }
}

#[test]
fn references_that_circle_chain_and_fan_out_end_soon() {
    let chain: Map<String, Value> = (0..2_000)
        .map(|at| {
            (
                format!("s{at}"),
                json!({ "allOf": [{ "$ref": format!("#/components/schemas/s{}", at + 1) }] }),
            )
        })
        .collect();
    let fan: Map<String, Value> = (0..40)
        .map(|at| {
            let next = json!({ "$ref": format!("#/components/schemas/f{}", at + 1) });
            let properties: Map<String, Value> =
                (0..30).map(|p| (format!("p{p}"), next.clone())).collect();
            (format!("f{at}"), json!({ "type": "object", "properties": properties }))
        })
        .collect();
    for (name, schemas) in [
        ("a", json!({ "a": { "$ref": "#/components/schemas/a" } })),
        (
            "a",
            json!({ "a": { "allOf": [{ "$ref": "#/components/schemas/a" }, { "$ref": "#/components/schemas/a" }] } }),
        ),
        (
            "a",
            json!({ "a": { "$ref": "#/components/schemas/b" }, "b": { "$ref": "#/components/schemas/a" } }),
        ),
        ("s0", Value::Object(chain)),
        ("f0", Value::Object(fan)),
    ] {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        let document = json!({
            "openapi": "3.1.0",
            "paths": { "/x": { "post": {
                "parameters": [{ "name": "q", "in": "query", "schema": schema }],
                "requestBody": { "content": { "application/json": { "schema": schema } } },
            } } },
            "components": { "schemas": schemas },
        });
        // Soon: the runner ends a test that takes minutes.
        let (modules, reasons) = read(document.to_string().as_bytes());
        assert_eq!(modules.len() + reasons.len(), 1, "{name}");
    }
}

#[test]
fn what_a_document_may_not_be_is_said() {
    let said = |document: &str, wanted: Wanted| {
        draft_document(document.as_bytes(), &wanted).unwrap_err().to_string()
    };
    for (document, reason) in [
        ("{\"openapi\": \"3.2.0\"}", "only 3.0 and 3.1"),
        ("{\"openapi\": 3.1}", "no `openapi: 3"),
        ("swagger: '2.0'", "Swagger 2"),
        ("openapi: 3.0.0", "no `paths`"),
        ("openapi: 3.0.0\npaths: {}\nx: &a 1", "anchors and aliases"),
    ] {
        assert!(said(document, wanted()).contains(reason), "{document}");
    }
    let one = "openapi: 3.0.0\npaths: {/a: {get: {operationId: list}}}";
    let named = Wanted { operations: vec!["list".into(), "other*".into()], ..wanted() };
    assert!(said(one, named).contains("`other*`"));
    for path in ["x", "/x/", "/a b", "/${x}", "/`"] {
        let based = Wanted { base_path: path.into(), ..wanted() };
        assert!(said(one, based).contains("base path"), "{path}");
    }
    let based = Wanted { base_path: "/api/v3".into(), operations: vec!["li*".into()], ..wanted() };
    let answer = draft_bytes(&draft_input(one.as_bytes(), &based));
    assert!(String::from_utf8(answer).unwrap().contains("`/api/v3/a`"));
}
