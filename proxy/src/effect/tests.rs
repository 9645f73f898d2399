//! Rows B1, B2, B9 and B11 as pure tables.
#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn b1_b2_methods_have_one_reading() {
    for (method, expected) in [
        ("GET", Some(Effect::Read)),
        ("HEAD", Some(Effect::Read)),
        ("DELETE", Some(Effect::Destroy)),
        ("POST", Some(Effect::Write)),
        ("OPTIONS", Some(Effect::Write)),
        ("PROPFIND", Some(Effect::Write)),
        ("QUERY", Some(Effect::Write)),
        ("M-SEARCH", Some(Effect::Write)),
        ("get", None),
        ("GeT", None),
        ("delete", None),
        ("dElEtE", None),
        ("patch", None),
        ("TRACE", None),
        ("TRACK", None),
        ("CONNECT", None),
        ("G ET", None),
        ("GET\r\n", None),
        ("GET\0", None),
        ("", None),
        ("ＧＥＴ", None),
    ] {
        assert_eq!(effect(method).ok(), expected, "{method:?}");
    }
}

fn raised(raise: &[(&str, &str, Effect)], method: &str, path: &str) -> Effect {
    let one = |(method, path, to): &(&str, &str, Effect)| Raise {
        method: (*method).to_owned(),
        path: (*path).to_owned(),
        to: *to,
    };
    let overrides = Overrides { raise: raise.iter().map(one).collect(), ..Overrides::default() };
    ask(&overrides, method, path, None, None, b"")
}

fn ask(
    overrides: &Overrides,
    method: &str,
    path: &str,
    query: Option<&str>,
    content_type: Option<&str>,
    body: &[u8],
) -> Effect {
    let target = Target {
        host: 0,
        authority: "api.acme.test".into(),
        path: path.into(),
        query: query.map(str::to_owned),
    };
    let asked = Asked { method, target: &target, content_type, body };
    counts_as(overrides, effect(method).unwrap(), &asked)
}

#[test]
fn b11_a_raised_path_is_met_in_every_spelling() {
    let send = [("GET", "/send/{}", Effect::Write)];
    for path in [
        "/send/1",
        "/Send/1",
        "/%73end/1",
        "/send;x=1/1",
        "/send/1/",
        "/send/a%20b",
        "/send/a%2Fb",
        "/send/x%2fy",
        "/send%2f1",
    ] {
        assert_eq!(raised(&send, "GET", path), Effect::Write, "{path}");
        assert_eq!(raised(&send, "HEAD", path), Effect::Write, "{path}");
    }
    for path in ["/send", "/sender/1", "/send/1/2", "/x/send/1"] {
        assert_eq!(raised(&send, "GET", path), Effect::Read, "{path}");
    }
    let below = [("*", "/$batch/*", Effect::Destroy)];
    for path in ["/$batch", "/$batch/a", "/%24batch/a/b", "/$BATCH/"] {
        assert_eq!(raised(&below, "POST", path), Effect::Destroy, "{path}");
        assert_eq!(raised(&below, "GET", path), Effect::Destroy, "{path}");
    }
    assert_eq!(raised(&[("GET", "*", Effect::Write)], "GET", "/any/thing"), Effect::Write);
    assert_eq!(raised(&[("POST", "*", Effect::Write)], "GET", "/any/thing"), Effect::Read);
    // Never lowered, and the strictest of several counts.
    assert_eq!(raised(&[("*", "*", Effect::Write)], "DELETE", "/x"), Effect::Destroy);
    let both = [("*", "*", Effect::Write), ("POST", "/x", Effect::Destroy)];
    assert_eq!(raised(&both, "POST", "/x"), Effect::Destroy);
}

#[test]
fn b09_only_a_whole_query_counts_as_a_read() {
    let overrides = Overrides { graphql: Some("/graphql".into()), ..Overrides::default() };
    let json = Some("application/json");
    let post = |body: &str| ask(&overrides, "POST", "/graphql", None, json, body.as_bytes());
    for body in [
        r#"{"query":"{ me }"}"#,
        r#"{"query":"query A { me }","variables":{"a":1},"operationName":"A"}"#,
        r#"{"query":"{ me }","variables":null,"operationName":null}"#,
    ] {
        assert_eq!(post(body), Effect::Read, "{body}");
    }
    for body in [
        r#"{"query":"mutation { x }"}"#,
        r#"[{"query":"{ me }"}]"#,
        r#"{"query":"{ me }","query":"mutation { x }"}"#,
        r#"{"query":"{ me }","Query":"mutation { x }"}"#,
        r#"{"query":"{ me }","extensions":{"persistedQuery":{"sha256Hash":"x"}}}"#,
        r#"{"id":"abc"}"#,
        r#"{"query":"{ me }"} {"query":"mutation { x }"}"#,
        "\u{feff}{\"query\":\"{ me }\"}",
        "{ me }",
        "",
    ] {
        assert_eq!(post(body), Effect::Write, "{body}");
    }
    let query = br#"{"query":"{ me }"}"#;
    for (method, path, search, kind) in [
        ("POST", "/graphql", Some("query=mutation{x}"), json),
        ("POST", "/graphql", None, Some("application/graphql")),
        ("POST", "/graphql", None, Some("application/json; charset=utf-7")),
        ("POST", "/graphql", None, None),
        ("POST", "/Graphql", None, json),
        ("POST", "/graphql/", None, json),
        ("PUT", "/graphql", None, json),
        ("POST", "/other", None, json),
        ("GET", "/graphql", Some("query=mutation{x}"), None),
        ("GET", "/graphql", Some("query={me}"), None),
        ("GET", "/%67raphql", Some("query={me}"), None),
    ] {
        let found = ask(&overrides, method, path, search, kind, query);
        assert_eq!(found, Effect::Write, "{method} {path} {search:?} {kind:?}");
    }
    assert_eq!(ask(&overrides, "GET", "/x", None, None, b""), Effect::Read);
    let raised = Overrides {
        raise: vec![Raise { method: "*".into(), path: "*".into(), to: Effect::Write }],
        ..overrides
    };
    assert_eq!(ask(&raised, "POST", "/graphql", None, json, query), Effect::Write);
}
