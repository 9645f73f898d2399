//! What can stand in a connection's overrides, and what counts as stricter.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::ContentHash;

fn raise(method: &str, path: &str, to: Effect) -> Raise {
    Raise { method: method.into(), path: path.into(), to }
}

fn headers(names: &[&str]) -> Overrides {
    Overrides {
        headers: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Overrides::default()
    }
}

#[test]
fn what_no_person_can_open() {
    for name in [
        "host",
        "authorization",
        "cookie",
        "content-length",
        "transfer-encoding",
        "connection",
        "x-forwarded-for",
        "proxy-authorization",
        "sec-fetch-site",
        "x-original-url",
        "x-http-method-override",
        "proxy-authorization",
        "x-goog-api-key",
        "api-key",
        "x-auth-token",
        "x-amz-security-token",
        "private-token",
        "authentication",
        "x-real-ip",
        "true-client-ip",
        "x-host",
        "x-original-host",
        "x-forwarded-host",
        "range",
        "",
        "Sudo",
        "x_y",
        "a b",
    ] {
        let fault = headers(&[name]).check().expect_err(name);
        assert!(fault.reason.starts_with(&format!("`{name}` is not ")), "{fault}");
    }
    headers(&["sudo", "stripe-account", "impersonate-user", "x-goog-user-project"])
        .check()
        .unwrap();
}

#[test]
fn e15_no_wildcard_but_any() {
    for host in ["*.acme.test", "*.com", "cdn.acme.test:0", "127.0.0.1", "localhost", "a", ""] {
        let to = Overrides { follow_downloads: vec![host.into()], ..Overrides::default() };
        to.check().expect_err(host);
    }
    for host in ["*", "cdn.acme.test", "cdn.acme.test:8443"] {
        let to = Overrides { follow_downloads: vec![host.into()], ..Overrides::default() };
        to.check().expect(host);
    }
}

#[test]
fn paths_methods_and_numbers() {
    for one in [
        raise("get", "/x", Effect::Write),
        raise("TRACE", "/x", Effect::Write),
        raise("GET", "x", Effect::Write),
        raise("GET", "/*/x", Effect::Write),
        raise("GET", "//x", Effect::Write),
        raise("GET", "/x?y", Effect::Write),
        raise("GET", "/x", Effect::Read),
    ] {
        let with = Overrides { raise: vec![one.clone()], ..Overrides::default() };
        assert_eq!(with.check().expect_err(&format!("{one:?}")).name, "raise");
    }
    for path in ["graphql", "/g?x", "/g/{}", "/g*"] {
        let with = Overrides { graphql: Some(path.into()), ..Overrides::default() };
        assert_eq!(with.check().expect_err(path).name, "graphql");
    }
    for rate in [0, 60_001] {
        Overrides { rate: Some(rate), ..Overrides::default() }.check().unwrap_err();
    }
    for concurrent in [0, 257] {
        Overrides { concurrent: Some(concurrent), ..Overrides::default() }.check().unwrap_err();
    }
    Overrides {
        raise: vec![
            raise("*", "*", Effect::Write),
            raise("GET", "/send/{}", Effect::Destroy),
            raise("POST", "/$batch/*", Effect::Destroy),
        ],
        graphql: Some("/graphql".into()),
        rate: Some(60),
        concurrent: Some(1),
        ..Overrides::default()
    }
    .check()
    .unwrap();
}

fn sdk(name: &str, version: &str) -> Sdk {
    Sdk {
        name: name.into(),
        version: version.into(),
        integrity: "sha512-q83v".into(),
        digest: ContentHash([7; 32]),
    }
}

#[test]
fn sdks_are_pinned_named_once_and_few() {
    let of = |sdks: Vec<Sdk>| Overrides { sdks, ..Overrides::default() };
    of(vec![sdk("stripe", "23.1.0"), sdk("@octokit/core", "7.0.8")]).check().unwrap();
    let unpinned = Sdk { integrity: "sha1-abc".into(), ..sdk("stripe", "23.1.0") };
    for bad in [
        vec![sdk("stripe", "^23")],
        vec![sdk("../stripe", "23.1.0")],
        vec![sdk("node:fs", "1.0.0")],
        vec![unpinned],
        vec![sdk("stripe", "23.1.0"), sdk("stripe", "23.0.0")],
        (0..9).map(|at| sdk(&format!("p{at}"), "1.0.0")).collect(),
    ] {
        assert_eq!(of(bad.clone()).check().expect_err(&format!("{bad:?}")).name, "sdks");
    }
}

#[test]
fn b11_without_a_person_only_stricter() {
    let none = Overrides::default();
    let wide = Overrides {
        headers: vec!["sudo".into()],
        encoded_slash: true,
        range: true,
        follow_downloads: vec!["*".into()],
        graphql: Some("/graphql".into()),
        sdks: vec![sdk("stripe", "23.1.0")],
        standing_any: true,
        ..Overrides::default()
    };
    let strict = Overrides {
        rate: Some(10),
        concurrent: Some(1),
        raise: vec![raise("GET", "/send", Effect::Write)],
        ..Overrides::default()
    };
    let stricter = Overrides {
        rate: Some(5),
        concurrent: Some(1),
        raise: vec![raise("GET", "/send", Effect::Destroy), raise("*", "*", Effect::Write)],
        ..Overrides::default()
    };
    for (now, before, stricter) in [
        (&none, &none, true),
        (&strict, &none, true),
        (&stricter, &strict, true),
        (&none, &wide, true),
        (&wide, &none, false),
        (&none, &strict, false),
        (&strict, &stricter, false),
    ] {
        assert_eq!(now.only_raises(before), stricter, "{now:?} after {before:?}");
    }
    // Each wide thing alone is a widening.
    for change in [
        |o: &mut Overrides| o.headers = vec!["sudo".into()],
        |o: &mut Overrides| o.encoded_slash = true,
        |o: &mut Overrides| o.range = true,
        |o: &mut Overrides| o.follow_downloads = vec!["*".into()],
        |o: &mut Overrides| o.graphql = Some("/graphql".into()),
    ] {
        let mut one = Overrides::default();
        change(&mut one);
        assert!(!one.only_raises(&none) && none.only_raises(&one), "{one:?}");
        assert_eq!(one.lines().len(), 1);
    }
}
