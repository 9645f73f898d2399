//! What a person may write as a scheme, and which field an error names.
#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::json;

/// The field at fault, or `-`.
fn fault(scheme: serde_json::Value) -> String {
    match serde_json::from_value::<Scheme>(scheme.clone()) {
        Err(error) => panic!("{scheme}: {error}"),
        Ok(scheme) => scheme.check(&[]).err().map_or("-".into(), |fault| fault.field.into()),
    }
}

#[test]
fn d03_d05_entries_and_the_field_at_fault() {
    for (scheme, field) in [
        (json!({"scheme": "none"}), "-"),
        (json!({"scheme": "bearer"}), "-"),
        (json!({"scheme": "api_key_header", "header": "x-key"}), "-"),
        (json!({"scheme": "api_key_header", "header": "X-Key"}), "header"),
        (json!({"scheme": "api_key_header", "header": ""}), "header"),
        (json!({"scheme": "api_key_header", "header": "x_key"}), "header"),
        (json!({"scheme": "api_key_header", "header": "host"}), "header"),
        (json!({"scheme": "api_key_header", "header": "content-length"}), "header"),
        (json!({"scheme": "api_key_header", "header": "x", "prefix": "a\nb"}), "prefix"),
        (json!({"scheme": "api_key_query", "parameter": "api_key"}), "-"),
        (json!({"scheme": "api_key_query", "parameter": "a=b"}), "parameter"),
        (json!({"scheme": "api_key_query", "parameter": "a%20b"}), "parameter"),
        (json!({"scheme": "api_key_query", "parameter": ""}), "parameter"),
        (json!({"scheme": "basic"}), "-"),
        (json!({"scheme": "basic", "username": "me@acme.test/token"}), "-"),
        (json!({"scheme": "basic", "username": "me:you"}), "username"),
        (json!({"scheme": "basic", "username": ""}), "username"),
        (json!({"scheme": "basic", "username": "m\r\ne"}), "username"),
        (json!({"scheme": "cookie", "name": "session"}), "-"),
        (json!({"scheme": "cookie", "name": "a;b"}), "name"),
        (json!({"scheme": "url_path", "template": "/bot{token}"}), "-"),
        (json!({"scheme": "url_path", "template": "/v1/{token}/api"}), "-"),
        (json!({"scheme": "url_path", "template": "/bot"}), "template"),
        (json!({"scheme": "url_path", "template": "bot{token}"}), "template"),
        (json!({"scheme": "url_path", "template": "/{token}/"}), "template"),
        (json!({"scheme": "url_path", "template": "/{token}{token}"}), "template"),
        (json!({"scheme": "url_path", "template": "//{token}"}), "template"),
        (json!({"scheme": "url_path", "template": "/../{token}"}), "template"),
        (json!({"scheme": "url_path", "template": "/a%2F{token}"}), "template"),
        (json!({"scheme": "url_path", "template": "/a?b={token}"}), "template"),
    ] {
        assert_eq!(fault(scheme.clone()), field, "{scheme}");
    }
}

#[test]
fn a_field_nobody_knows_is_refused() {
    for scheme in [
        json!({"scheme": "cookie", "name": "a", "value": "b"}),
        json!({"scheme": "basic", "user": "me"}),
    ] {
        serde_json::from_value::<Scheme>(scheme).unwrap_err();
    }
}
