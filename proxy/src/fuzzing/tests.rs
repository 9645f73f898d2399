//! The short form of `./dev fuzz`: bytes put together from words that matter to
//! each target, from a fixed seed, so that a failure is the same each time.

/// Inputs for each target: under a second in a build with checks.
const ROUNDS: usize = 4_000;

/// A generator of our own: a test must not change when a library's does.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // xorshift64*, by Vigna.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).map_or(0, |high| high % sides)
    }
}

/// And for the scrubber, whose reference goes every way.
const SCRUBBER_ROUNDS: usize = 600;

fn rounds(seed: u64, words: &[&[u8]], target: fn(&[u8])) {
    rounds_of(ROUNDS, seed, words, target);
}

fn rounds_of(count: usize, seed: u64, words: &[&[u8]], target: fn(&[u8])) {
    let mut dice = Dice(seed);
    for _ in 0..count {
        let mut input = vec![u8::try_from(dice.roll(256)).unwrap_or(0)];
        for _ in 0..dice.roll(12) {
            match dice.roll(8) {
                0 => input.push(u8::try_from(dice.roll(256)).unwrap_or(0)),
                _ => input.extend_from_slice(words[dice.roll(words.len())]),
            }
        }
        target(&input);
    }
}

#[test]
fn no_target_leaves_the_authority() {
    let words: &[&[u8]] = &[
        b"/",
        b"/",
        b"//",
        b"\\",
        b"%2F",
        b"%2f",
        b"%5c",
        b"%2e",
        b"%2E",
        b"..",
        b".",
        b"@",
        b":",
        b"?",
        b"#",
        b"https://",
        b"HTTP://",
        b"api.acme.test",
        b"files.acme.test",
        b"evil.test",
        b":443",
        b"\t",
        b" ",
        b"%",
        b"%25",
        b"%00",
        b"%0d%0a",
        b";",
        b"=",
        b"&",
        b"a",
        b"{}",
        b"[",
        b"|",
        "é".as_bytes(),
        "／".as_bytes(),
        "\u{fffd}".as_bytes(),
        b"%c3%a9",
        b"%ff",
        b"%c0%af",
    ];
    rounds(1, words, super::path);
}

#[test]
fn no_header_passes_that_is_not_on_a_list() {
    let words: &[&[u8]] = &[
        b"\xff",
        b"\xff",
        b":",
        b": ",
        b"Authorization",
        b"Host",
        b"Content-Length",
        b"Accept",
        b"X-Y-Version",
        b"Transfer-Encoding",
        b"Range",
        b"sudo",
        b"Cookie",
        b"_",
        b"\r\n",
        b"\0",
        b"1",
        b"text/plain",
        b"if-match",
        b"Content-Type",
        b"User-Agent",
        b"Accept-Encoding",
        b"proxy-version",
        b"host-version",
        b"x-http-method-override",
    ];
    rounds(2, words, super::header_filter);
}

#[test]
fn scrubbing_equals_a_naive_reference() {
    let words: &[&[u8]] = &[
        b"\x80",
        b"\x81\x81",
        b"\x8f",
        b"\x95",
        b"\xc0",
        b"\xc1",
        b"\xd5",
        b"sk_live_",
        b"S3CRET",
        b"sk_live_S3CRET+/0123456789",
        b"sk_live_S3CRET+/012345678",
        b"\\",
        b"\\u00",
        b"%",
        b"%25",
        b"&",
        b"&amp;",
        b"\xe3",
        b"\xf7",
        b"\n",
        b"x",
        b"[REDACTED:acme]",
    ];
    rounds_of(SCRUBBER_ROUNDS, 3, words, super::scrubber);
}

#[test]
fn a_preview_is_bounded_json() {
    let words: &[&[u8]] = &[b"\"", b"\\", "é".as_bytes(), b"\xc3", b"\0", b"text", b"\xf0\x9f"];
    rounds(4, words, super::preview);
}

#[test]
fn a_graphql_body_is_judged_and_never_panics() {
    let words: &[&[u8]] = &[
        b"query",
        b"mutation",
        b"subscription",
        b"fragment F on T",
        b"{",
        b"}",
        b"{ a }",
        b"(",
        b")",
        b"$x: Int",
        b"\"",
        b"\"\"\"",
        b"\\u{",
        b"#",
        b"\n",
        b"...",
        b"@a",
        b",",
        b"[",
        b"]",
        b"extend type",
        b"\xef\xbb\xbf",
        b" a ",
        b":",
    ];
    rounds(5, words, super::graphql);
}

#[test]
fn a_gzip_body_never_passes_its_caps() {
    use std::io::Write;
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    assert!(bomb.write_all(&vec![0; 1024 * 1024]).is_ok());
    let bomb = bomb.finish().unwrap_or_default();
    let (head, tail) = bomb.split_at(bomb.len() / 2);
    let words: &[&[u8]] = &[&bomb, head, tail, &bomb[..12], b"\x1f\x8b\x08", b"\0\0\0\xff\xff"];
    rounds(6, words, super::decoder);
}
