//! The decoder under its caps.
#![allow(clippy::unwrap_used)]

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn decode(coding: Coding, limits: &Limits, bytes: &[u8], size: usize) -> Result<Vec<u8>, Refusal> {
    let mut decoder = Decoder::new(coding, limits);
    let mut out = Vec::new();
    for chunk in bytes.chunks(size) {
        out.extend_from_slice(&decoder.push(Bytes::copy_from_slice(chunk))?);
    }
    out.extend_from_slice(&decoder.finish()?);
    assert_eq!(decoder.produced(), out.len());
    Ok(out)
}

#[test]
fn g15_round_trip_caps_and_truncation() {
    let limits = Limits { response_bytes: 200_000, ..Limits::default() };
    let text: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).take(100_000).collect();
    let zipped = gzip(&text);
    for size in [1, 100, 5_000, 1 << 20] {
        assert_eq!(decode(Coding::Gzip, &limits, &zipped, size).unwrap(), text);
    }
    let code = |result: Result<Vec<u8>, Refusal>| result.unwrap_err().code();
    let over = gzip(&[text.clone(), text.clone(), text.clone()].concat());
    assert_eq!(code(decode(Coding::Gzip, &limits, &over, 1_000)), "response_too_large");
    // Under the cap, over the ratio.
    let bomb = gzip(&[0; 190_000]);
    assert_eq!(code(decode(Coding::Gzip, &limits, &bomb, 10)), "response_too_large");
    assert_eq!(
        code(decode(Coding::Gzip, &limits, &zipped[..zipped.len() - 3], 100)),
        "upstream_truncated"
    );
    assert_eq!(code(decode(Coding::Gzip, &limits, b"not gzip at all", 100)), "upstream_protocol");
    assert_eq!(
        code(decode(Coding::Identity, &limits, &vec![0; 200_001], 1_000)),
        "response_too_large"
    );
    assert_eq!(decode(Coding::Gzip, &limits, b"", 1).unwrap(), b"");
}
