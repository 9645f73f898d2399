//! Whether a request to a GraphQL path only queries. The whole document is
//! parsed; whatever is not plainly one query document in one JSON object (a
//! batch, a persisted hash, an extension, a second place a server could read
//! the document from) is not known to read, and stays a write.

use super::Asked;
use apollo_parser::Parser;
use apollo_parser::cst::Definition;
use serde::Deserialize;

/// Levels of nesting and tokens a document may have: what the largest
/// introspection query needs ten times over, and little enough to parse in
/// well under a millisecond.
const LEVELS: usize = 64;
const TOKENS: usize = 20_000;

/// What a GraphQL server is sent. A key that stands twice or is not one of
/// these fails: two JSON readers could differ about it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Posted {
    query: String,
    #[serde(default, rename = "variables")]
    _variables: serde_json::Value,
    #[serde(default, rename = "operationName")]
    _operation: Option<String>,
}

pub(super) fn only_reads(asked: &Asked<'_>) -> bool {
    let json = asked.content_type.is_some_and(|kind| {
        let kind = kind.to_ascii_lowercase().replace(' ', "");
        matches!(kind.as_str(), "application/json" | "application/json;charset=utf-8")
    });
    // A query string may hold another document, and servers that look there
    // look there first.
    if asked.method != "POST" || asked.target.query.is_some() || !json {
        return false;
    }
    // An array would be read by position, and a server reads it as a batch.
    let object = asked.body.trim_ascii_start().first() == Some(&b'{');
    object
        && serde_json::from_slice(asked.body).is_ok_and(|Posted { query, .. }| only_queries(&query))
}

/// Every operation of a document is a query, and the document is whole.
fn only_queries(document: &str) -> bool {
    let parsed = Parser::new(document).recursion_limit(LEVELS).token_limit(TOKENS).parse();
    if parsed.errors().len() > 0 {
        return false;
    }
    let mut queries = 0;
    for definition in parsed.document().definitions() {
        match definition {
            Definition::OperationDefinition(operation) => {
                // `{ field }` has no word before it and is a query.
                let query =
                    operation.operation_type().is_none_or(|word| word.query_token().is_some());
                if !query {
                    return false;
                }
                queries += 1;
            }
            Definition::FragmentDefinition(_) => {}
            _ => return false,
        }
    }
    queries > 0
}

#[cfg(test)]
mod tests {
    use super::only_queries;

    #[test]
    fn b09_documents() {
        for document in [
            "{ me { id } }",
            "query { me { id } }",
            "query A($x: Int) { a(x: $x) { ...F } } fragment F on T { id }",
            "query A { a } query B { b }",
            "# mutation { x }\n{ a(s: \"mutation { x }\") }",
            "{ mutation }",
            "query mutation { a }",
        ] {
            assert!(only_queries(document), "{document}");
        }
        for document in [
            "mutation { x }",
            "query A { a } mutation B { b }",
            "subscription { s }",
            "{ a } mutation { b }",
            "fragment F on T { id }",
            "type Query { a: Int }",
            "{ a } type T { a: Int }",
            "{ a",
            "{ a } }",
            "",
            "{ a } \u{0} mutation { b }",
            "\"\"\"{ a }\"\"\" mutation { b }",
        ] {
            assert!(!only_queries(document), "{document}");
        }
        let deep = format!("{}a{}", "{a".repeat(500), "}".repeat(500));
        assert!(!only_queries(&deep));
        assert!(!only_queries(&format!("{{ {} }}", "a ".repeat(30_000))));
    }
}
