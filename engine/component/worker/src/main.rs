//! The binary the component sandbox starts its processes from. It has two lives,
//! both of the jail: the one-shot compiler and the worker. Started by hand it
//! says so and ends.

mod engine;

mod compile;
mod guest;
mod host;

use std::process::ExitCode;

/// The one function a component exports.
const RUN: &str = "run";

fn main() -> ExitCode {
    let ended = cambium_jail::role_main::<guest::ComponentGuest>(&[("compile", compile::compile)]);
    ended.unwrap_or_else(|| {
        eprintln!("this is a part of cambium, which starts it itself");
        ExitCode::from(2)
    })
}
