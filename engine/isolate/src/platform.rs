//! V8 itself: its flags and its platform, the same where the snapshot is made
//! and where it is used. One thread all the way: a pool thread would need more
//! system calls than the worker's filter leaves, and could not be forked.

use deno_core::v8;
use std::sync::OnceLock;

/// No generated machine code (so no executable mapping and no WebAssembly), no
/// code from strings, shared memory off. The stack must end well before the
/// thread's own: Rust frames of ops need room below it. What the warm-up compiled
/// stays.
const FLAGS: &str = "--jitless --single-threaded --disallow-code-generation-from-strings \
                     --enable-sharedarraybuffer-per-context --stack-size=900 \
                     --no-harmony-temporal --no-flush-bytecode";

static PLATFORM: OnceLock<v8::SharedRef<v8::Platform>> = OnceLock::new();

/// Sets V8 up once a process and gives its platform.
pub(crate) fn platform() -> v8::SharedRef<v8::Platform> {
    PLATFORM
        .get_or_init(|| {
            v8::V8::set_flags_from_string(FLAGS);
            v8::V8::set_entropy_source(entropy);
            v8::new_single_threaded_default_platform(false).make_shared()
        })
        .clone()
}

/// V8's own seeds; what a module sees as random is drawn by our ops.
fn entropy(buffer: &mut [u8]) -> bool {
    getrandom::fill(buffer).is_ok()
}
