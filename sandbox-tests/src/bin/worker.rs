//! The binary that the sandbox tests start workers from: nothing but the
//! hidden roles of the product's own binary. Started by hand it prints what a
//! call costs on this machine.

use std::process::ExitCode;

fn main() -> ExitCode {
    cambium_isolate::role_main(&[("check", cambium_engine::check_bytes)]).unwrap_or_else(|| {
        match std::env::args().nth(1).as_deref() {
            Some("call") => cambium_sandbox_tests::measure::call(),
            _ => cambium_sandbox_tests::measure::print(),
        }
    })
}
