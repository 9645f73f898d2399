//! Hands a fuzzer's bytes to the property of this name in `proxy/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cambium_proxy::fuzzing::scrubber(data));
