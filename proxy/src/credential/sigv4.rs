//! `aws_sigv4`: AWS Signature Version 4 in headers, over the final bytes. Ours
//! and not the SDK's crate, because that one brings the SDK's runtime along;
//! the vectors of the official test suite hold it. The body is always hashed:
//! `UNSIGNED-PAYLOAD`, streaming and presigned queries are not made.

use super::header::header;
use super::hmac::{Signed, hex};
use super::{Unfit, Wire};
use crate::scheme::AwsScheme;
use hmac::{Hmac, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// What AWS leaves as it is: RFC 3986's unreserved characters.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Headers a hop or a library may change after signing; ours are the last word
/// on everything else.
const UNSIGNED: &[&str] = &["accept-encoding", "authorization", "user-agent", "x-amzn-trace-id"];

/// Parameters of a presigned query: a second signature beside ours.
pub(super) const PRESIGNED: &[&str] = &[
    "x_amz_algorithm",
    "x_amz_credential",
    "x_amz_date",
    "x_amz_expires",
    "x_amz_security_token",
    "x_amz_signature",
    "x_amz_signedheaders",
];

/// The secret is the secret access key; a session token may follow on a line of
/// its own.
pub(super) fn parts(secret: &[u8]) -> Result<(&[u8], Option<&[u8]>), Unfit> {
    let mut lines = secret.split(|byte| *byte == b'\n');
    let key = lines.next().unwrap_or_default();
    let token = lines.next();
    let plain = |line: &[u8]| !line.is_empty() && line.iter().all(|b| (0x21..0x7f).contains(b));
    if lines.next().is_some() || !plain(key) || token.is_some_and(|token| !plain(token)) {
        return Err(
            "must be the secret access key, and a session token on a second line if there is one",
        );
    }
    Ok((key, token))
}

/// Signs one request.
pub(super) fn sign(scheme: &AwsScheme, secret: &[u8], wire: &Wire<'_>) -> Result<Signed, Unfit> {
    let (key, token) = parts(secret)?;
    let date = stamp(wire.now_ms);
    let body = hex(&Sha256::digest(wire.body));
    let mut added: Vec<(&str, &[u8])> =
        vec![("x-amz-date", date.as_bytes()), ("x-amz-content-sha256", body.as_bytes())];
    added.extend(token.map(|token| ("x-amz-security-token", token)));
    let mut signed: Vec<(String, String)> = vec![("host".into(), wire.authority.into())];
    signed.extend(
        wire.headers.iter().filter(|(name, _)| !UNSIGNED.contains(&name.as_str())).cloned(),
    );
    for (name, value) in &added {
        signed.push(((*name).into(), String::from_utf8_lossy(value).into_owned()));
    }
    // S3 reads a path as it is; every other service encodes it once more.
    let (path, query) = wire.target.split_once('?').unwrap_or((wire.target, ""));
    let path = canonical_path(path, scheme.service != "s3");
    let canonical = canonical(wire.method, &path, query, &mut signed, &body);
    let signature = signature(scheme, key, &date, &canonical);
    let names: Vec<&str> = signed.iter().map(|(name, _)| name.as_str()).collect();
    let authorization = Zeroizing::new(format!(
        "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
        scheme.access_key_id,
        scope(scheme, &date),
        names.join(";"),
        *signature,
    ));
    signed.iter_mut().for_each(|(_, value)| zeroize::Zeroize::zeroize(value));
    let mut headers = vec![header("authorization", "", authorization.as_bytes())?];
    for (name, value) in added {
        headers.push(header(name, "", value)?);
    }
    let mut made = vec![Zeroizing::new(key.to_vec())];
    made.extend(token.map(|token| Zeroizing::new(token.to_vec())));
    made.push(Zeroizing::new(signature.as_bytes().to_vec()));
    Ok(Signed { headers, made })
}

/// The canonical request; sorts and joins the headers in place.
fn canonical(
    method: &str,
    path: &str,
    query: &str,
    headers: &mut Vec<(String, String)>,
    body: &str,
) -> String {
    // Stable: values of one name keep their order.
    headers.sort_by(|one, other| one.0.cmp(&other.0));
    let mut joined: Vec<(String, String)> = Vec::with_capacity(headers.len());
    for (name, value) in headers.drain(..) {
        let value = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        match joined.last_mut() {
            Some((last, values)) if *last == name => {
                values.push(',');
                values.push_str(&value);
            }
            _ => joined.push((name, value)),
        }
    }
    *headers = joined;
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let query = canonical_query(query);
    format!("{method}\n{path}\n{query}\n{lines}\n{}\n{body}", names.join(";"))
}

/// The path as the service reads it: `twice` encodes what is on the wire once
/// more, else it is decoded and encoded as AWS does it.
fn canonical_path(path: &str, twice: bool) -> String {
    let segments = path.split('/').map(|segment| {
        if twice { utf8_percent_encode(segment, UNRESERVED).to_string() } else { strictly(segment) }
    });
    segments.collect::<Vec<_>>().join("/")
}

fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (strictly(name), strictly(value))
        })
        .collect();
    pairs.sort();
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

/// Decoded and encoded again, everything but unreserved characters.
fn strictly(text: &str) -> String {
    percent_decode_str(text)
        .map(|byte| percent_encoding::percent_encode(&[byte], UNRESERVED).to_string())
        .collect()
}

fn scope(scheme: &AwsScheme, date: &str) -> String {
    let day = date.get(..8).unwrap_or_default();
    format!("{day}/{}/{}/aws4_request", scheme.region, scheme.service)
}

fn signature(scheme: &AwsScheme, key: &[u8], date: &str, canonical: &str) -> Zeroizing<String> {
    let scope = scope(scheme, date);
    let hashed = hex(&Sha256::digest(canonical.as_bytes()));
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashed}");
    let mut first = Zeroizing::new(b"AWS4".to_vec());
    first.extend_from_slice(key);
    let key = scope.split('/').fold(first, |key, part| mac(&key, part.as_bytes()));
    Zeroizing::new(hex(&mac(&key, to_sign.as_bytes())))
}

#[allow(clippy::expect_used)]
fn mac(key: &[u8], message: &[u8]) -> Zeroizing<Vec<u8>> {
    let mac: Hmac<Sha256> = Mac::new_from_slice(key).expect("HMAC takes a key of any length");
    Zeroizing::new(mac.chain_update(message).finalize().into_bytes().to_vec())
}

/// `20150830T123600Z`.
fn stamp(now_ms: i64) -> String {
    let seconds = now_ms.div_euclid(1000);
    let (days, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days from 0000-03-01 in the proleptic Gregorian calendar, 400 years at a time.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year:04}{month:02}{date:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests;
