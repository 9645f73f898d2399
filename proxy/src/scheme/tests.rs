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

/// A scheme's object with some fields set otherwise; `null` takes one out.
fn with(scheme: &serde_json::Value, change: serde_json::Value) -> serde_json::Value {
    let mut scheme = scheme.clone();
    for (field, value) in change.as_object().unwrap() {
        match value {
            serde_json::Value::Null => drop(scheme.as_object_mut().unwrap().remove(field)),
            value => scheme[field] = value.clone(),
        }
    }
    scheme
}

#[test]
fn d19_d18_d20_entries_of_schemes_that_sign() {
    let hmac = json!({
        "scheme": "hmac", "message": "{method}{timestamp}{nonce}", "key_id": "k",
        "headers": {"x-sign": "{key_id} {nonce} {signature}"},
    });
    let aws = json!({
        "scheme": "aws_sigv4", "access_key_id": "AKID", "region": "eu-west-1", "service": "s3",
    });
    let jwt = json!({"scheme": "jwt_assertion", "issuer": "me"});
    for (scheme, change, field) in [
        (&hmac, json!({}), "-"),
        (&hmac, json!({"message": "{password}"}), "message"),
        (&hmac, json!({"message": "{method"}), "message"),
        (&hmac, json!({"message": "{signature}"}), "message"),
        (&hmac, json!({"message": "é"}), "message"),
        (&hmac, json!({"headers": {}}), "headers"),
        (&hmac, json!({"headers": {"x-sign": "none"}}), "headers"),
        (&hmac, json!({"headers": {"x-sign": "{body} {signature}"}}), "headers"),
        (&hmac, json!({"headers": {"host": "{signature}"}}), "headers"),
        (&hmac, json!({"headers": {"content-length": "{signature}"}}), "headers"),
        (&hmac, json!({"headers": {"X-Sign": "{signature}"}}), "headers"),
        (&hmac, json!({"headers": {"x-sign": "{key_id} {signature}"}}), "message"),
        (&hmac, json!({"key_id": null}), "key_id"),
        (&aws, json!({}), "-"),
        (&aws, json!({"access_key_id": "a/b"}), "access_key_id"),
        (&aws, json!({"region": ""}), "region"),
        (&aws, json!({"service": "s3, x=1"}), "service"),
        (&jwt, json!({}), "-"),
        (&jwt, json!({"issuer": ""}), "issuer"),
        (&jwt, json!({"lifetime_seconds": 59}), "lifetime_seconds"),
        (&jwt, json!({"lifetime_seconds": 3601}), "lifetime_seconds"),
        (&jwt, json!({"subject": "a\nb"}), "subject"),
        (&jwt, json!({"token_url": "https://169.254.169.254/token"}), "token_url"),
    ] {
        assert_eq!(fault(with(scheme, change.clone())), field, "{change}");
    }
}

#[test]
fn d06_d17_entries_of_schemes_with_tokens() {
    let client = json!({
        "scheme": "oauth2_client_credentials", "token_url": "https://id.acme.test/token",
        "client_id": "me",
    });
    let code = json!({
        "scheme": "oauth2_authorization_code", "token_url": "https://id.acme.test/token",
        "authorization_url": "https://acme.test/authorize", "client_id": "me",
    });
    for (scheme, change, field) in [
        (&client, json!({}), "-"),
        (&client, json!({"client_auth": "none"}), "client_auth"),
        (&client, json!({"client_id": ""}), "client_id"),
        (&client, json!({"scope": ""}), "scope"),
        (&client, json!({"token_url": "https://localhost/token"}), "token_url"),
        (&client, json!({"token_url": "https://10.0.0.1/token"}), "token_url"),
        (&client, json!({"token_url": "https://metadata.google.internal/token"}), "token_url"),
        (&client, json!({"token_url": "https://2130706433/token"}), "token_url"),
        (&code, json!({}), "-"),
        (&code, json!({"client_auth": "none"}), "-"),
        (&code, json!({"authorization_url": "https://127.1/a"}), "authorization_url"),
        (&code, json!({"issuer": "http://acme.test"}), "issuer"),
        (&code, json!({"parameters": {"state": "x"}}), "parameters"),
        (&code, json!({"parameters": {"redirect_uri": "x"}}), "parameters"),
        (&code, json!({"parameters": {"a&b": "x"}}), "parameters"),
    ] {
        assert_eq!(fault(with(scheme, change.clone())), field, "{change}");
    }
}

#[test]
fn e07_endpoints_that_are_none() {
    for (text, why) in [
        ("http://id.acme.test/token", "https://"),
        ("HTTPS://id.acme.test/token", "https://"),
        ("//id.acme.test/token", "https://"),
        ("https://id.acme.test", "path"),
        ("https://id.acme.test/token?a=1", "path"),
        ("https://id.acme.test/token#a", "path"),
        ("https://id.acme.test/../token", "path"),
        ("https://id.acme.test//token", "path"),
        ("https://id.acme.test/%74oken", "path"),
        ("https://id.acme.test/to ken", "path"),
        ("https://me@id.acme.test/token", "host name"),
        ("https://me:you@id.acme.test/token", "port"),
        ("https://id.acme.test:0/token", "port"),
        ("https://id.acme.test:99999/token", "port"),
        ("https://ID.acme.test/token", "host name"),
        ("https:///token", "host name"),
        ("https://id.acme.test\\@evil.test/token", "host name"),
        ("https://[::1]/token", "port"),
    ] {
        let error = text.parse::<Endpoint>().unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
    let endpoint: Endpoint = "https://id.acme.test:8443/oauth/token".parse().unwrap();
    assert_eq!(endpoint.to_string(), "https://id.acme.test:8443/oauth/token");
    assert_eq!(endpoint.authority(), "id.acme.test:8443");
    let plain: Endpoint = "https://id.acme.test:443/t".parse().unwrap();
    assert_eq!(plain.to_string(), "https://id.acme.test/t");
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
