//! Templates against wire paths.
#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn b14_holes_stay_in_one_segment() {
    for (template, path, fits) in [
        ("/orders", "/orders", true),
        ("/orders", "/orders/", false),
        ("/orders/{}", "/orders/7", true),
        ("/orders/{}", "/orders/", false),
        ("/orders/{}", "/orders/7/lines", false),
        ("/v{}/x", "/v1/x", true),
        ("/v{}/x", "/v/x", false),
        ("/{}-{}.json", "/a-b.json", true),
        ("/{}-{}.json", "/a-.json", false),
        ("/{}-{}.json", "/a-b-c.json", true),
        ("/{}a{}a", "/xaaa", true),
        ("/{}{}", "/a", false),
        ("/{}{}", "/ab", true),
        ("/café/{}", "/caf%C3%A9/1", true),
        ("/a b", "/a%20b", true),
        ("/{}", "/", false),
        ("/", "/", true),
        ("", "", true),
    ] {
        assert_eq!(template_fits(template, path), fits, "{template} {path}");
    }
}
