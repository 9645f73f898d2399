//! The official test suite's vectors, as facts in a table of our own, and what
//! our own use of the signer adds. Left out are those whose paths a request of
//! ours never has (they need dot segments or slashes resolved).
#![allow(clippy::unwrap_used)]

use super::*;

struct Vector {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    query: &'static str,
    /// Besides host and date.
    headers: &'static [(&'static str, &'static str)],
    /// Signed as a header too when it is there.
    body: Option<&'static str>,
    signature: &'static str,
}

const KEY: &[u8] = b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// 2015-08-30T12:36:00Z.
const AT_MS: i64 = 1_440_938_160_000;

#[rustfmt::skip]
const VECTORS: &[Vector] = &[
    Vector { name: "get-header-key-duplicate", method: "GET", path: "/", query: "", headers: &[("my-header1", "value2"), ("my-header1", "value2"), ("my-header1", "value1")], body: None, signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea" },
    Vector { name: "get-header-value-multiline", method: "GET", path: "/", query: "", headers: &[("my-header1", "value1 value2 value3")], body: None, signature: "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd" },
    Vector { name: "get-header-value-order", method: "GET", path: "/", query: "", headers: &[("my-header1", "value4"), ("my-header1", "value1"), ("my-header1", "value3"), ("my-header1", "value2")], body: None, signature: "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01" },
    Vector { name: "get-header-value-trim", method: "GET", path: "/", query: "", headers: &[("my-header1", "value1"), ("my-header2", "\"a   b   c\"")], body: None, signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736" },
    Vector { name: "get-relative-relative-unnormalized", method: "GET", path: "/example1/example2/../..", query: "", headers: &[], body: None, signature: "dc33e0856fd4baca4d7aa2146c38958283844764f38c74252a333df5e613003b" },
    Vector { name: "get-relative-unnormalized", method: "GET", path: "/example/..", query: "", headers: &[], body: None, signature: "eca7ead57bb5aa5c8e28007acd4ff04e1ff9a0ff3b237ec1554a184887ff9282" },
    Vector { name: "get-slash-dot-slash-unnormalized", method: "GET", path: "/./", query: "", headers: &[], body: None, signature: "68714168e6557f8f2de0ef956fc24dc2593a4bd2961f8df51898d8a134695145" },
    Vector { name: "get-slash-pointless-dot-unnormalized", method: "GET", path: "/./example", query: "", headers: &[], body: None, signature: "beb03f223f7deae4146464f06e29eebbee9c8afbe15c290cf07aa8b119e14cff" },
    Vector { name: "get-slash-unnormalized", method: "GET", path: "//", query: "", headers: &[], body: None, signature: "c88bcd3d312d75078c0cd961d6deae3f4c754924b01669efcfcb439fd5e5b76e" },
    Vector { name: "get-slashes-unnormalized", method: "GET", path: "//example//", query: "", headers: &[], body: None, signature: "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5" },
    Vector { name: "get-space-normalized", method: "GET", path: "/example%20space/", query: "", headers: &[], body: None, signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741" },
    Vector { name: "get-space-unnormalized", method: "GET", path: "/example%20space/", query: "", headers: &[], body: None, signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741" },
    Vector { name: "get-unreserved", method: "GET", path: "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", query: "", headers: &[], body: None, signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f" },
    Vector { name: "get-utf8", method: "GET", path: "/%E1%88%B4", query: "", headers: &[], body: None, signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85" },
    Vector { name: "get-vanilla", method: "GET", path: "/", query: "", headers: &[], body: None, signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
    Vector { name: "get-vanilla-empty-query-key", method: "GET", path: "/", query: "Param1=value1", headers: &[], body: None, signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb" },
    Vector { name: "get-vanilla-query", method: "GET", path: "/", query: "", headers: &[], body: None, signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
    Vector { name: "get-vanilla-query-order-encoded", method: "GET", path: "/", query: "Param-3=Value3&Param=Value2&%E1%88%B4=Value1", headers: &[], body: None, signature: "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac" },
    Vector { name: "get-vanilla-query-order-key-case", method: "GET", path: "/", query: "Param2=value2&Param1=value1", headers: &[], body: None, signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },
    Vector { name: "get-vanilla-query-unreserved", method: "GET", path: "/", query: "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", headers: &[], body: None, signature: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197" },
    Vector { name: "get-vanilla-utf8-query", method: "GET", path: "/", query: "%E1%88%B4=bar", headers: &[], body: None, signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04" },
    Vector { name: "get-vanilla-with-session-token", method: "GET", path: "/", query: "", headers: &[("x-amz-security-token", "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267")], body: None, signature: "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8" },
    Vector { name: "post-header-key-case", method: "POST", path: "/", query: "", headers: &[], body: None, signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },
    Vector { name: "post-header-key-sort", method: "POST", path: "/", query: "", headers: &[("my-header1", "value1")], body: None, signature: "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c" },
    Vector { name: "post-header-value-case", method: "POST", path: "/", query: "", headers: &[("my-header1", "VALUE1")], body: None, signature: "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d" },
    Vector { name: "post-sts-header-before", method: "POST", path: "/", query: "", headers: &[("x-amz-security-token", "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==")], body: None, signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead" },
    Vector { name: "post-vanilla", method: "POST", path: "/", query: "", headers: &[], body: None, signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },
    Vector { name: "post-vanilla-empty-query-value", method: "POST", path: "/", query: "Param1=value1", headers: &[], body: None, signature: "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11" },
    Vector { name: "post-vanilla-query", method: "POST", path: "/", query: "Param1=value1", headers: &[], body: None, signature: "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11" },
    Vector { name: "post-x-www-form-urlencoded", method: "POST", path: "/", query: "", headers: &[("content-type", "application/x-www-form-urlencoded"), ("content-length", "13")], body: Some("Param1=value1"), signature: "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b" },
    Vector { name: "post-x-www-form-urlencoded-parameters", method: "POST", path: "/", query: "", headers: &[("content-type", "application/x-www-form-urlencoded; charset=utf-8"), ("content-length", "13")], body: Some("Param1=value1"), signature: "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422" },
];

fn scheme(region: &str, service: &str) -> AwsScheme {
    AwsScheme {
        access_key_id: "AKIDEXAMPLE".into(),
        region: region.into(),
        service: service.into(),
    }
}

#[test]
fn d18_the_official_vectors() {
    let date = stamp(AT_MS);
    assert_eq!(date, "20150830T123600Z");
    for vector in VECTORS {
        let Vector { name, method, path, query, headers, body, signature: expected } = vector;
        let hashed = hex(&Sha256::digest(body.unwrap_or_default().as_bytes()));
        let mut signed: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        signed.push(("host".into(), "example.amazonaws.com".into()));
        signed.push(("x-amz-date".into(), date.clone()));
        if body.is_some() {
            signed.push(("x-amz-content-sha256".into(), hashed.clone()));
        }
        let path = canonical_path(path, false);
        let canonical = canonical(method, &path, query, &mut signed, &hashed);
        let made = signature(&scheme("us-east-1", "service"), KEY, &date, &canonical);
        assert_eq!(*made, *expected, "{name}\n{canonical}");
    }
}

#[test]
fn d18_services_other_than_s3_encode_twice() {
    let path = "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-west-2%3A892717189312%3Afunction%3Amy-rusty-fun/invocations";
    let mut signed = vec![
        ("host".into(), "lambda.us-east-2.amazonaws.com".into()),
        ("x-amz-date".into(), "20210511T154045Z".into()),
    ];
    let hashed = hex(&Sha256::digest(b""));
    let canonical = canonical("POST", &canonical_path(path, true), "", &mut signed, &hashed);
    let made = signature(&scheme("us-east-2", "lambda"), KEY, "20210511T154045Z", &canonical);
    assert_eq!(*made, "4b93abbcc68be32bd64c18e2c71150660ab4c29bbd6c32a383a7517a88fc1804");
    assert_eq!(
        canonical_path("/test/@connections/JBDvjfGEIAMCERw%3D", true),
        "/test/%40connections/JBDvjfGEIAMCERw%253D"
    );
    assert_eq!(canonical_path("/a+b/c%2bd/%7E", false), "/a%2Bb/c%2Bd/~");
}

#[test]
fn d18_what_goes_on_a_request() {
    let headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("user-agent".to_owned(), "cambium".to_owned()),
        ("accept-encoding".to_owned(), "gzip".to_owned()),
    ];
    let wire = Wire {
        method: "POST",
        authority: "example.amazonaws.com:8443",
        target: "/x?b=2&a=1",
        headers: &headers,
        body: b"{}",
        now_ms: AT_MS,
    };
    let secret = [KEY, b"\nTOKEN"].concat();
    let signed = sign(&scheme("us-east-1", "service"), &secret, &wire).unwrap();
    let value = |wanted: &str| {
        let found = signed.headers.iter().find(|(name, _)| name == wanted).unwrap();
        found.1.to_str().unwrap().to_owned()
    };
    let authorization = value("authorization");
    assert!(
        authorization.starts_with(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
         SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, \
         Signature="
        ),
        "{authorization}"
    );
    assert_eq!(value("x-amz-security-token"), "TOKEN");
    assert_eq!(value("x-amz-content-sha256"), hex(&Sha256::digest(b"{}")));
    assert!(signed.headers.iter().all(|(_, value)| value.is_sensitive()));
}

#[test]
fn dates() {
    for (ms, text) in [
        (0, "19700101T000000Z"),
        (951_782_399_000, "20000228T235959Z"),
        (951_782_400_000, "20000229T000000Z"),
        (4_107_542_399_000, "21000228T235959Z"),
        (4_107_542_400_000, "21000301T000000Z"),
    ] {
        assert_eq!(stamp(ms), text);
    }
}

#[test]
fn d18_a_secret_is_a_key_and_perhaps_a_token() {
    assert_eq!(parts(b"key").unwrap(), (&b"key"[..], None));
    assert_eq!(parts(b"key\ntoken").unwrap(), (&b"key"[..], Some(&b"token"[..])));
    for wrong in [&b""[..], b"key\n", b"\ntoken", b"a b", b"a\nb\nc"] {
        parts(wrong).unwrap_err();
    }
}
